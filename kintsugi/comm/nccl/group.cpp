#include "kintsugi/comm/nccl/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/gpu/reduce_in_order.h"
#include "kintsugi/comm/nccl/library.h"
#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {
namespace {

using nccl::Library;

void check(const Library& l, int result, std::string_view what) {
  if (result == nccl::kSuccess || result == nccl::kInProgress) return;
  throw base::UserError("comm", "NCCL failed in {}: {}; NCCL_DEBUG=WARN in the environment prints details", what,
                        l.error_text(result));
}

class NcclCommunicator : public CheckedCommunicator {
 public:
  NcclCommunicator(const Library& library, device::Device& device, device::Stream& compute,
                   std::unique_ptr<Communicator> host, const GroupOptions& options)
      : library_(library),
        compute_(compute),
        stream_(device.stream()),
        host_(std::move(host)),
        options_(options),
        backend_({.name = "nccl",
                  .ranks = host_->backend().ranks,
                  .adds_in_rank_order = options.in_rank_order,
                  .one_at_a_time = true}) {
    require_own_devices(device);
    if (options.in_rank_order) {
      base::require(size() <= kMostOnDevice, "comm", "{} ranks add in their order, of {}", size(), kMostOnDevice);
      reduce_ = reduction_on(device);
    }
    nccl::Id id = {};
    if (rank() == 0) check(library_, library_.get_unique_id(&id), "making a group");
    host_->wait(host_->broadcast(std::as_writable_bytes(std::span(&id, 1)), 0));
    check(library_, library_.init_rank(&handle_, size(), id, rank()), "making a group");
    open_.resize(std::max<size_t>(1, options.collectives + options.messages));
    for (Open& open : open_) {
      open.ready = device.event();
      open.done = device.event();
    }
    if (options.collectives == 0) connect(device);
  }
  // Abort operations that nobody waited for after a failure: they may never complete.
  ~NcclCommunicator() override {
    if (is_broken())
      abort();
    else if (handle_ != nullptr)
      library_.destroy(handle_);
  }
  bool is_broken() const { return failed_ || oldest_ <= made_ || std::uncaught_exceptions() > 0; }
  // Makes the device abandon the group's work at once. NCCL's subsequent cleanup waits for the other processes of the
  // machine, which do not abort by themselves (NCCL source, src/proxy.cc); inside a group that is never ended, that
  // cleanup is deferred to the end of the process.
  void abort() {
    if (handle_ == nullptr) return;
    library_.group_start();
    library_.abort(std::exchange(handle_, nullptr));
    if (backend_.ranks != RankKind::process) library_.group_end();
  }

  const Backend& backend() const override { return backend_; }
  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  void wait(Event event) override {
    base::require(event.number <= made_, "comm", "a wait for event {} of {}", event.number, made_);
    if (oldest_ <= event.number) finish(event.number);
  }
  void next_waits(bool waits) override { waits_ = waits; }
  void progress() override {
    failed_ = true;  // reset if none of the following throws
    int state = nccl::kSuccess;
    check(library_, library_.async_error(handle_, &state), "a look at its state");
    check(library_, state, "an operation");
    if (!compute_.captured()) require_moving();  // events must not be queried during capture
    host_->progress();
    failed_ = false;
  }

 protected:
  Event enqueue(std::span<const Operation> operations) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Open {
    std::unique_ptr<device::Event> ready, done;
    Event host;
    Operation first;  // the first of those enqueued together
  };

  void connect(device::Device& device);
  void require_own_devices(device::Device& device);
  void require_moving();
  void call(const Operation& o);
  void call_in_order(const Operation& o);
  void announce_own();
  void announce_sum(const DeviceTerms& terms, size_t bytes);
  void messages(const Operation& o);
  // Newest first: in the group's stream it follows the others.
  void finish(uint64_t number) {
    host_->wait(open_[number % open_.size()].host);
    for (uint64_t n = number; n >= oldest_; --n) compute_.wait(*open_[n % open_.size()].done);
    oldest_ = number + 1;
  }
  void copy_own(const std::byte* from, std::byte* to, size_t bytes) override {
    if (bytes > 0) compute_.copy(to, from, static_cast<int64_t>(bytes));
  }
  void announce(const Operation& o, size_t reads, size_t writes);

  const Library& library_;
  device::Stream& compute_;
  const std::unique_ptr<device::Stream> stream_;
  const std::unique_ptr<Communicator> host_;  // reports who has arrived, and times out
  const GroupOptions options_;
  const Backend backend_;
  nccl::Handle* handle_ = nullptr;
  std::vector<Open> open_;  // events oldest_ to made_
  uint64_t oldest_ = 1, made_ = 0;
  uint64_t not_done_ = 1;                   // the oldest event that the device may not have completed
  Clock::time_point moved_ = Clock::now();  // when not_done_ was last known to change
  bool failed_ = false;
  bool waits_ = true;               // whether the next operation waits for this rank's work
  DeviceReduce* reduce_ = nullptr;  // for reductions in rank order; options_.sums receives the terms of the others
};

// Two ranks connect when they first exchange a message, and the first to arrive blocks in its call until the other does
// (NCCL source, src/transport.cc, ncclTransportP2pSetup). With several groups, each rank might block in a different
// one; so connect here, where all ranks create their groups in the same order.
void NcclCommunicator::connect(device::Device& device) {
  const auto memory = device.allocate(2 * size());  // one byte to each rank and one from each
  void* const stream = stream_->native();
  const auto run = [&](int result) {
    if (result != nccl::kSuccess) abort();
    check(library_, result, "a first message");
  };
  run(library_.group_start());
  for (int m = 0; m < size(); ++m) {
    if (m == rank()) continue;
    run(library_.send(memory->data() + m, 1, nccl::kBytes, m, handle_, stream));
    run(library_.receive(memory->data() + size() + m, 1, nccl::kBytes, m, handle_, stream));
  }
  run(library_.group_end());
  stream_->synchronize();
}

// NCCL allows one rank per device, but its error message does not name the ranks.
void NcclCommunicator::require_own_devices(device::Device& device) {
  const std::string identity = device.properties().identity;
  using Identity = std::array<char, 16>;
  Identity mine = {};
  std::copy_n(identity.begin(), std::min(identity.size(), mine.size()), mine.begin());
  std::vector<Identity> every(static_cast<size_t>(size()));
  host_->wait(host_->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  for (size_t a = 0; a < every.size(); ++a)
    for (size_t b = 0; b < a; ++b)
      if (every[a] != Identity() && every[a] == every[b])
        throw base::UserError("comm",
                              "ranks {} and {} of a group share GPU {}, but NCCL supports one rank per GPU: start one "
                              "rank per GPU, or set KINTSUGI_DEVICE_GROUPS=host",
                              b, a, device.properties().name);
}

// All members have enqueued the operations that this rank has waited for on the host; if the device still does not
// execute them, a connection between devices is broken without NCCL noticing.
void NcclCommunicator::require_moving() {
  const Clock::time_point now = Clock::now();
  const uint64_t before = not_done_;
  if (made_ >= open_.size()) not_done_ = std::max(not_done_, made_ - open_.size() + 1);
  while (not_done_ < oldest_ && open_[not_done_ % open_.size()].done->done()) ++not_done_;
  if (not_done_ > before || not_done_ >= oldest_) moved_ = now;
  if (now - moved_ < options_.time_limit) return;
  throw Timeout(fmt::format("rank {} of a group of {}: {} did not complete within {:g} s although all ranks launched "
                            "it; NCCL_DEBUG=WARN in the environment prints details",
                            rank(), size(), open_[not_done_ % open_.size()].first.text(),
                            std::chrono::duration<double>(options_.time_limit).count()),
                {}, {});
}

Event NcclCommunicator::enqueue(std::span<const Operation> operations) {
  check_room(operations, options_);
  if (made_ - oldest_ + 1 == open_.size()) finish(oldest_);
  Open& open = open_[(made_ + 1) % open_.size()];
  if (waits_ || !stream_->beside(compute_)) stream_->wait_for(compute_, *open.ready);
  waits_ = true;
  if (operations.size() > 1) check(library_, library_.group_start(), "an exchange");
  for (const Operation& o : operations)
    if (o.bytes > 0) call(o);
  if (operations.size() > 1) check(library_, library_.group_end(), "an exchange");
  stream_->record(*open.done);
  open.first = operations[0];
  if (not_done_ > made_) moved_ = Clock::now();
  ++made_;
  open.host = meet(*host_, operations);
  return {made_};
}

// For a device that checks the order of accesses.
void NcclCommunicator::announce(const Operation& o, size_t reads, size_t writes) {
  if (!stream_->checks()) return;
  const std::span<const std::byte> in(o.in, reads), out(o.out, writes);
  const size_t has_in = o.in != nullptr && reads > 0, has_out = o.out != nullptr && writes > 0;
  stream_->announce({.what = name_of(o.kind), .reads = {&in, has_in}, .writes = {&out, has_out}});
}

// Reduction in rank order: each rank receives its part from all others, adds, and sends the sum to those that need it.
void NcclCommunicator::call_in_order(const Operation& o) {
  const auto members = static_cast<size_t>(size()), own = static_cast<size_t>(rank()),
             width = static_cast<size_t>(tensor::size_of(o.dtype)), count = o.bytes / width;
  const size_t part = (count + members - 1) / members * width;  // may be shorter or empty on the last ranks
  const size_t apart = (part + 15) / 16 * 16;  // aligned stride between the parts received from each rank
  base::require(members * apart <= options_.sums.size(), "comm", "{} in a group with {} bytes for sums", o.text(),
                options_.sums.size());
  const auto begin = [&](size_t m) { return std::min(m * part, o.bytes); };
  const auto length = [&](size_t m) { return std::min(begin(m) + part, o.bytes) - begin(m); };
  void* const stream = stream_->native();
  const auto run = [&](int result) { check(library_, result, o.text_in_full()); };
  const auto exchange = [&](const auto& sent, const auto& received) {
    run(library_.group_start());
    for (size_t m = 0; m < members; ++m) {
      if (m == own) continue;
      const int peer = static_cast<int>(m);
      if (const std::span<const std::byte> s = sent(m); !s.empty())
        run(library_.send(s.data(), s.size(), nccl::kBytes, peer, handle_, stream));
      if (const std::span<std::byte> r = received(m); !r.empty())
        run(library_.receive(r.data(), r.size(), nccl::kBytes, peer, handle_, stream));
    }
    run(library_.group_end());
  };
  const auto from = [&](size_t m) { return options_.sums.data() + m * apart; };
  announce(o, o.bytes, 0);
  announce_own();
  exchange([&](size_t m) { return std::span(o.in + begin(m), length(m)); },
           [&](size_t m) { return std::span(from(m), length(own)); });
  const bool scatters = o.kind == Kind::reduce_scatter, gathers = o.kind == Kind::all_reduce;
  std::byte* const sum = scatters ? o.out : gathers || rank() == o.root ? o.out + begin(own) : from(own);
  if (length(own) > 0) {
    DeviceTerms terms = {.ranks = size(), .elements = static_cast<int64_t>(length(own) / width)};
    for (size_t m = 0; m < members; ++m) terms.ins[m] = m == own ? o.in + begin(own) : from(m);
    terms.outs[0] = sum;
    announce_sum(terms, length(own));
    reduce_(*stream_, terms, o.dtype, o.reduction);
  }
  if (scatters) return;
  const auto wants = [&](size_t m) { return gathers || static_cast<int>(m) == o.root; };
  if (wants(own)) announce(o, 0, o.bytes);
  exchange(
      [&](size_t m) { return wants(m) ? std::span<const std::byte>(sum, length(own)) : std::span<const std::byte>(); },
      [&](size_t m) { return wants(own) ? std::span(o.out + begin(m), length(m)) : std::span<std::byte>(); });
}

// For a device that checks the order of accesses: declares the received terms and the sum.
void NcclCommunicator::announce_own() {
  if (!stream_->checks()) return;
  const std::span<const std::byte> all = options_.sums;
  stream_->announce({.what = "parts of a sum", .reads = {}, .writes = {&all, 1}});
}

void NcclCommunicator::announce_sum(const DeviceTerms& terms, size_t bytes) {
  if (!stream_->checks()) return;
  std::vector<std::span<const std::byte>> reads;
  for (int m = 0; m < terms.ranks; ++m) reads.emplace_back(terms.ins[m], bytes);
  const std::span<const std::byte> written(terms.outs[0], bytes);
  stream_->announce({.what = "a sum in the order of ranks", .reads = reads, .writes = {&written, 1}});
}

void NcclCommunicator::call(const Operation& o) {
  if (o.reduces() && options_.in_rank_order) return call_in_order(o);
  const auto members = static_cast<size_t>(size());
  const size_t part = o.has_parts() ? o.bytes / members : o.bytes;
  const int type = o.reduces() ? nccl::type_of(o.dtype) : nccl::kBytes;
  const int reduction = o.reduces() ? nccl::reduction_of(o.reduction) : 0;
  const size_t count = o.bytes / (o.reduces() ? static_cast<size_t>(tensor::size_of(o.dtype)) : 1);
  void* const stream = stream_->native();
  const auto run = [&](int result) { check(library_, result, o.text_in_full()); };
  switch (o.kind) {
    case Kind::all_reduce:
      announce(o, o.bytes, o.bytes);
      return run(library_.all_reduce(o.in, o.out, count, type, reduction, handle_, stream));
    case Kind::reduce:
      announce(o, o.bytes, o.bytes);
      return run(library_.reduce(o.in, o.out, count, type, reduction, o.root, handle_, stream));
    case Kind::broadcast:
      announce(o, rank() == o.root ? o.bytes : 0, rank() == o.root ? 0 : o.bytes);
      return run(library_.broadcast(o.in, o.out, count, type, o.root, handle_, stream));
    case Kind::all_gather:
      announce(o, part, o.bytes);
      return run(library_.all_gather(o.in, o.out, part, type, handle_, stream));
    case Kind::reduce_scatter:
      announce(o, o.bytes, part);
      return run(library_.reduce_scatter(o.in, o.out, count / members, type, reduction, handle_, stream));
    case Kind::scatter:
    case Kind::gather:
    case Kind::all_to_all:
      return messages(o);
    case Kind::send:
      announce(o, o.bytes, 0);
      return run(library_.send(o.in, o.bytes, type, o.root, handle_, stream));
    case Kind::receive:
      announce(o, 0, o.bytes);
      return run(library_.receive(o.out, o.bytes, type, o.root, handle_, stream));
    case Kind::barrier:
      return;
  }
}

// Collectives that NCCL does not provide: grouped messages, with a copy for the own part.
void NcclCommunicator::messages(const Operation& o) {
  const auto members = static_cast<size_t>(size()), own = static_cast<size_t>(rank());
  const size_t part = o.bytes / members;
  const bool sends_all = o.kind == Kind::all_to_all || (o.kind == Kind::scatter && rank() == o.root);
  const bool receives_all = o.kind == Kind::all_to_all || (o.kind == Kind::gather && rank() == o.root);
  const std::byte* const own_in = o.in == nullptr ? nullptr : o.in + (sends_all ? own * part : 0);
  std::byte* const own_out = o.out == nullptr ? nullptr : o.out + (receives_all ? own * part : 0);
  if (own_in != nullptr && own_out != nullptr && own_in != own_out && (o.kind == Kind::all_to_all || rank() == o.root))
    stream_->copy(own_out, own_in, static_cast<int64_t>(part));
  announce(o,
           sends_all                ? o.bytes
           : o.kind == Kind::gather ? part
                                    : 0,
           receives_all              ? o.bytes
           : o.kind == Kind::scatter ? part
                                     : 0);
  void* const stream = stream_->native();
  check(library_, library_.group_start(), o.text());
  for (size_t m = 0; m < members; ++m) {
    if (m == own) continue;
    const int peer = static_cast<int>(m);
    if (sends_all || (o.kind == Kind::gather && peer == o.root))
      check(library_, library_.send(sends_all ? o.in + m * part : o.in, part, nccl::kBytes, peer, handle_, stream),
            o.text());
    if (receives_all || (o.kind == Kind::scatter && peer == o.root))
      check(library_,
            library_.receive(receives_all ? o.out + m * part : o.out, part, nccl::kBytes, peer, handle_, stream),
            o.text());
  }
  check(library_, library_.group_end(), o.text());
}

}  // namespace

void end_nccl_groups(std::span<Communicator* const> groups) {
  std::vector<NcclCommunicator*> all;
  for (Communicator* group : groups)
    if (auto* const one = dynamic_cast<NcclCommunicator*>(group)) all.push_back(one);
  if (std::ranges::none_of(all, &NcclCommunicator::is_broken)) return;
  const Library& l = *nccl::library();
  l.group_start();
  for (NcclCommunicator* one : all) one->abort();
  if (all[0]->backend().ranks != RankKind::process) l.group_end();
}

std::unique_ptr<Communicator> nccl_group(World& world, device::Device& device, device::Stream& compute,
                                         std::span<const int> ranks, const GroupOptions& options) {
  const Library* library = nccl::library();
  if (library == nullptr)
    throw base::UserError("comm",
                          "NCCL (libnccl.so.2) is not found: install libnccl2, or name its folder in "
                          "KINTSUGI_CUDA_LIBRARIES (PyPI's nvidia-nccl has it in nvidia/nccl/lib)");
  GroupOptions of_host = options;
  of_host.collectives = std::max<size_t>(of_host.collectives, 2);
  return std::make_unique<NcclCommunicator>(*library, device, compute, world.group(ranks, of_host), options);
}

}  // namespace kintsugi::comm
