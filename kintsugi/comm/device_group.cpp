#include "kintsugi/comm/device_group.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/gpu/reduce_in_order.h"
#include "kintsugi/comm/operation.h"

namespace kintsugi::gpu_emulated {

kintsugi::comm::DeviceReduce device_reduce;

}  // namespace kintsugi::gpu_emulated

namespace kintsugi::comm {

DeviceReduce* reduction_on(device::Device& device) {
  if (device.emulated()) return gpu_emulated::device_reduce;
  auto* const found = reinterpret_cast<DeviceReduce*>(device.symbol(kDeviceReduce));
  base::require(found != nullptr, "comm", "the module of {} has no reduction", device.kind());
  return found;
}

namespace {

// An operation whose members post their parts; the last to post enqueues it in the group's stream.
struct Posted {
  std::vector<Operation> operations;                  // [member]
  std::vector<std::unique_ptr<device::Event>> ready;  // [member] recorded in its compute stream at the post
  std::vector<char> awaited;                          // [member] whether to wait for `ready`
  std::vector<char> holds;                            // [member] has posted, and not waited since
  std::unique_ptr<device::Event> done;
  uint64_t number = 0;  // position in the group's stream
  int here = 0;
};

// Operation n uses entry n % entries. A member may reuse an entry after waiting for its operation: by then all members
// have posted and it has been enqueued.
using PostedQueue = std::vector<Posted>;

// State shared by the members of a group.
struct DeviceGroup {
  DeviceGroup(device::Device& device, int members, const GroupOptions& options)
      : stream(device.stream()), reduce(reduction_on(device)) {
    const auto queue = [&](int of, size_t entries) {
      PostedQueue q(entries);
      for (Posted& p : q) {
        p.operations.resize(static_cast<size_t>(of));
        p.holds.resize(static_cast<size_t>(of));
        p.awaited.resize(static_cast<size_t>(of));
        for (int m = 0; m < of; ++m) p.ready.push_back(device.event());
        p.done = device.event();
      }
      return q;
    };
    collectives = queue(members, options.collectives);
    for (int pair = 0; pair < members * members; ++pair)
      messages.push_back(queue(2, pair / members == pair % members ? 0 : options.messages));
  }

  std::mutex mutex;
  std::unique_ptr<device::Stream> stream;
  DeviceReduce* reduce;
  uint64_t started = 0;
  PostedQueue collectives;
  std::vector<PostedQueue> messages;  // [from][to]
};

constexpr Backend kOnDevice = {
    .name = "device threads", .ranks = RankKind::thread, .adds_in_rank_order = true, .one_at_a_time = true};

class DeviceCommunicator : public CheckedCommunicator {
 public:
  DeviceCommunicator(device::Stream& compute, std::unique_ptr<Communicator> host, std::shared_ptr<DeviceGroup> group,
                     const GroupOptions& options)
      : compute_(compute), host_(std::move(host)), group_(std::move(group)), options_(options) {
    open_.resize(std::max<size_t>(1, options.collectives + options.messages));
    sent_.resize(static_cast<size_t>(size()));
    received_.resize(static_cast<size_t>(size()));
  }

  const Backend& backend() const override { return kOnDevice; }
  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  void wait(Event event) override {
    base::require(event.number <= made_, "comm", "a wait for event {} of {}", event.number, made_);
    if (oldest_ <= event.number) finish(event.number);
  }
  void next_waits(bool waits) override { waits_ = waits; }
  void progress() override { host_->progress(); }

 protected:
  Event enqueue(std::span<const Operation> operations) override;

 private:
  struct Part {
    Posted* posted;
    size_t member;
  };
  struct Open {
    Event host;
    std::vector<Part> parts;
  };

  // The entry of the next operation of its queue, and this rank's position in it.
  Part next(const Operation& o) {
    if (!o.is_message()) return {entry(group_->collectives, collectives_++), static_cast<size_t>(rank())};
    const auto other = static_cast<size_t>(o.root), own = static_cast<size_t>(rank()),
               members = static_cast<size_t>(size());
    if (o.kind == Kind::send) return {entry(group_->messages[own * members + other], sent_[other]++), 0};
    return {entry(group_->messages[other * members + own], received_[other]++), 1};
  }
  static Posted* entry(PostedQueue& queue, uint64_t number) { return &queue[number % queue.size()]; }

  void keep_order(std::span<const Operation> operations);
  void start(Posted& p);
  void reduce(std::span<const std::byte* const> ins, std::span<std::byte* const> outs, const Operation& o,
              int64_t bytes);
  void copy(const std::byte* from, std::byte* to, int64_t bytes) {
    if (from != to && bytes > 0) group_->stream->copy(to, from, bytes);
  }
  void copy_own(const std::byte* from, std::byte* to, size_t bytes) override {
    if (bytes > 0) compute_.copy(to, from, static_cast<int64_t>(bytes));
  }
  void finish(uint64_t number);

  device::Stream& compute_;
  const std::unique_ptr<Communicator> host_;  // reports who has arrived, and times out
  const std::shared_ptr<DeviceGroup> group_;
  const GroupOptions options_;
  uint64_t collectives_ = 0;               // number enqueued so far, like the next two
  std::vector<uint64_t> sent_, received_;  // [member]
  std::vector<Open> open_;                 // events oldest_ to made_
  std::vector<Part> finished_;             // scratch of finish()
  uint64_t oldest_ = 1, made_ = 0;
  bool waits_ = true;  // whether the next operation waits for this rank's work
};

// An operation starts once its members have posted it, so a collective, or a message in a group of two, follows
// everything that each member posted before. Any other message could overtake an operation that this rank has posted
// and a third rank has not, and forward data that has yet to be received. The host therefore waits until that operation
// has started.
void DeviceCommunicator::keep_order(std::span<const Operation> operations) {
  const bool overtakes = size() > 2 && std::ranges::any_of(operations, &Operation::is_message);
  if (overtakes && oldest_ <= made_) host_->wait(open_[made_ % open_.size()].host);
}

Event DeviceCommunicator::enqueue(std::span<const Operation> operations) {
  check_room(operations, options_);
  keep_order(operations);
  if (made_ - oldest_ + 1 == open_.size()) finish(oldest_);
  Open& open = open_[(made_ + 1) % open_.size()];
  open.parts.clear();
  for (const Operation& o : operations) {
    const Part part = next(o);
    while (part.posted->holds[part.member]) finish(oldest_);
    open.parts.push_back(part);
  }
  for (size_t i = 0; i < operations.size(); ++i) {
    const auto [posted, member] = open.parts[i];
    const std::lock_guard lock(group_->mutex);
    posted->awaited[member] = (waits_ || !group_->stream->beside(compute_)) && !group_->stream->follows(compute_);
    if (posted->awaited[member]) compute_.record(*posted->ready[member]);
    posted->operations[member] = operations[i];
    posted->holds[member] = 1;
    if (++posted->here == static_cast<int>(posted->operations.size())) start(*posted);
  }
  waits_ = true;
  ++made_;
  open.host = meet(*host_, operations);
  return {made_};
}

// Newest first: in the group's stream it follows the others.
void DeviceCommunicator::finish(uint64_t number) {
  host_->wait(open_[number % open_.size()].host);
  const std::lock_guard lock(group_->mutex);
  finished_.clear();
  for (uint64_t n = oldest_; n <= number; ++n)
    for (const Part& part : open_[n % open_.size()].parts) finished_.push_back(part);
  std::sort(finished_.begin(), finished_.end(),
            [](const Part& a, const Part& b) { return a.posted->number > b.posted->number; });
  for (const auto& [posted, member] : finished_) {
    compute_.wait(*posted->done);
    posted->holds[member] = 0;
  }
  oldest_ = number + 1;
}

void DeviceCommunicator::reduce(std::span<const std::byte* const> ins, std::span<std::byte* const> outs,
                                const Operation& o, int64_t bytes) {
  device::Stream& stream = *group_->stream;
  DeviceTerms terms = {.ranks = static_cast<int>(ins.size()), .elements = bytes / tensor::size_of(o.dtype)};
  std::copy(ins.begin(), ins.end(), terms.ins);
  std::copy(outs.begin(), outs.end(), terms.outs);
  if (stream.checks()) {
    std::vector<std::span<const std::byte>> reads, writes;
    for (const std::byte* in : ins) reads.emplace_back(in, static_cast<size_t>(bytes));
    for (const std::byte* out : outs)
      if (out != nullptr) writes.emplace_back(out, static_cast<size_t>(bytes));
    stream.announce({.what = name_of(o.kind), .reads = reads, .writes = writes});
  }
  group_->reduce(stream, terms, o.dtype, o.reduction);
}

void DeviceCommunicator::start(Posted& p) {
  const Operation& first = p.operations[0];
  for (const Operation& o : p.operations)
    base::require(first.is_message() ? o.bytes == first.bytes : o.agrees_with(first), "comm",
                  "a rank of the group calls {}, another {}", first.text_in_full(), o.text_in_full());
  const size_t members = p.operations.size();
  for (size_t m = 0; m < members; ++m)
    if (p.awaited[m]) group_->stream->wait(*p.ready[m]);
  std::vector<const std::byte*> ins;
  std::vector<std::byte*> outs;
  for (const Operation& o : p.operations) {
    ins.push_back(o.in);
    outs.push_back(o.out);
  }
  const auto root = static_cast<size_t>(std::max(0, first.root));
  const auto bytes = static_cast<int64_t>(first.bytes);
  const int64_t part = first.has_parts() ? bytes / static_cast<int64_t>(members) : bytes;
  const auto at = [&](size_t member) { return static_cast<int64_t>(member) * part; };
  switch (first.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
      reduce(ins, outs, first, bytes);
      break;
    case Kind::reduce_scatter:
      for (size_t m = 0; m < members; ++m) {
        std::vector<const std::byte*> parts;
        for (const std::byte* in : ins) parts.push_back(in + at(m));
        reduce(parts, std::span(outs).subspan(m, 1), first, part);
      }
      break;
    case Kind::broadcast:
      for (std::byte* out : outs) copy(ins[root], out, bytes);
      break;
    case Kind::all_gather:
      for (std::byte* out : outs)
        for (size_t m = 0; m < members; ++m) copy(ins[m], out + at(m), part);
      break;
    case Kind::scatter:
      for (size_t m = 0; m < members; ++m) copy(ins[root] + at(m), outs[m], part);
      break;
    case Kind::gather:
      for (size_t m = 0; m < members; ++m) copy(ins[m], outs[root] + at(m), part);
      break;
    case Kind::all_to_all:
      for (size_t from = 0; from < members; ++from)
        for (size_t to = 0; to < members; ++to) copy(ins[from] + at(to), outs[to] + at(from), part);
      break;
    case Kind::send:
    case Kind::receive:
      copy(ins[0], outs[1], bytes);
      break;
    case Kind::barrier:
      break;
  }
  group_->stream->record(*p.done);
  p.number = ++group_->started;
  p.here = 0;
}

}  // namespace

std::unique_ptr<Communicator> device_group(World& world, device::Device& device, device::Stream& compute,
                                           std::span<const int> ranks, const GroupOptions& options) {
  base::require(world.backend().ranks != RankKind::process, "comm", "ranks that are processes share no device");
  base::require(ranks.size() <= kMostOnDevice, "comm", "{} ranks share a device", ranks.size());
  GroupOptions of_host = options;
  of_host.collectives = std::max<size_t>(of_host.collectives, 2);
  auto host = world.group(ranks, of_host);
  // Member 0 allocates the shared state and passes its address to the others; all are in the same process.
  std::shared_ptr<DeviceGroup> group;
  if (host->rank() == 0) group = std::make_shared<DeviceGroup>(device, host->size(), options);
  const std::shared_ptr<DeviceGroup>* address = &group;
  host->wait(host->broadcast(std::as_writable_bytes(std::span(&address, 1)), 0));
  if (host->rank() != 0) group = *address;
  host->wait(host->barrier());
  return std::make_unique<DeviceCommunicator>(compute, std::move(host), std::move(group), options);
}

}  // namespace kintsugi::comm
