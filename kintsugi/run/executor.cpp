#include "kintsugi/run/executor.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/comm/device_groups.h"
#include "kintsugi/comm/nccl/group.h"
#include "kintsugi/comm/timeout_message.h"
#include "kintsugi/device/no_memory.h"
#include "kintsugi/profile/recorder.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/halo.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/program/ordered_sums.h"
#include "kintsugi/program/stage_words.h"
#include "kintsugi/tensor/dims.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::run {

using bind::bytes_of;
using bind::touch;

using program::BufferId;
using program::Collective;
using program::Instruction;
using program::Kind;
using program::kNoBuffer;
using program::Region;
using tensor::View;

Arena::Arena(int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* data = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    throw base::UserError("run",
                          "cannot allocate the {} that the program needs; a smaller train.micro_batch needs less",
                          base::format_bytes(static_cast<uint64_t>(bytes)));
  ::madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a hint; correct without it
  data_ = static_cast<std::byte*>(data);
}

Arena::~Arena() {
  if (data_) ::munmap(data_, static_cast<size_t>(bytes_));
}

namespace {

// The other end of a channel.
int peer_in(const program::Program& p, const std::pair<std::vector<mesh::Factor>, std::string>& key, int rank) {
  for (const program::Body& body : p.bodies)
    for (const Instruction& i : body.instructions)
      if (i.kind == Kind::collective && i.group == key.first && i.channel == key.second && i.peer >= 0)
        return p.mesh.group(rank, i.group)[static_cast<size_t>(i.peer)];
  throw base::InternalError("run", "channel \"{}\" has no message", key.second);
}

// By factors and channel: how many of its messages this rank has open at one time, at most.
std::map<std::pair<std::vector<mesh::Factor>, std::string>, size_t> open_messages(const program::Program& p) {
  std::map<std::pair<std::vector<mesh::Factor>, std::string>, size_t> now, most;
  for (const program::CallList& list : p.lists)
    for (const program::Call& call : list.calls)
      for (const Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions) {
        if (i.channel.empty()) continue;
        size_t& open = now[{i.group, i.channel}];
        open += i.kind == Kind::wait ? -1 : 1;
        most[{i.group, i.channel}] = std::max(most[{i.group, i.channel}], open);
      }
  return most;
}

// What the device says, and what the memory is for.
base::UserError without_memory(const device::NoMemory& refused, const program::Program& p, int rank) {
  const int stages = p.mesh.stages();
  return {"device",
          "{}; rank {}{} needs {} bytes: {}",
          refused.said(),
          rank,
          stages > 1 ? fmt::format(" (stage {} of {})", p.stage, stages) : "",
          base::group_digits(p.bytes()),
          program::parts_in_words(program::memory_table(p))};
}

}  // namespace

Executor::Executor(program::Program program, const kernels::KernelSet& kernels, base::ThreadTeam& team,
                   const Place& place)
    : program_(std::move(program)),
      team_(team),
      rank_(place.world ? place.world->rank() : 0),
      world_(place.world),
      tf32_(kernels.tf32()),
      arena_(kernels.device() ? 0 : program_.bytes()) {
  const int ranks = world_ ? world_->size() : 1;
  base::require(program_.mesh.ranks() == ranks, "run", "a program for {} ranks on {}", program_.mesh.ranks(), ranks);
  base::require(program_.on_device == (kernels.device() != nullptr), "run", "a program for {} is run by \"{}\"",
                program_.on_device ? "a device" : "the host", kernels.name());
  if (program_.file_bytes > 0 && !kernels.device())
    file_ = std::make_unique<FileStore>(place.offload_folder, program_.file_bytes, rank_);
  int events = 0;
  for (const program::Body& body : program_.bodies)
    for (const Instruction& i : body.instructions) events = std::max(events, i.event + 1);
  for (const program::CallList& list : program_.lists)
    for (const program::Call& call : list.calls) micro_batches_ = std::max(micro_batches_, call.micro_batch + 1);
  running_.resize(static_cast<size_t>(events * micro_batches_));
  if (kernels.device()) {
    try {
      device_ =
          std::make_unique<DeviceSide>(*kernels.device(), program_.bytes(), program_.staged_bytes, place.time_limit);
    } catch (const device::NoMemory& refused) {
      throw without_memory(refused, program_, rank_);
    }
    ranges_ = kernels.device()->ranges();
    if (program_.file_bytes > 0) store_ = std::make_unique<DeviceStore>(*device_, program_.file_bytes);
    if (world_ && world_->size() > 1)
      exchange_ = comm::exchange_of(*world_, *kernels.device(), program_.mesh.stages() > 1);
  }
  make_groups(place);
  if (device_ && exchange_.way == comm::DeviceWay::nccl)
    device_->set_meanwhile([this] {
      for (const auto& [key, group] : groups_) group->progress();
      if (capture_) capture_->progress();
    });
  if (device_ && exchange_.captured && !by_host())
    capture_ = comm::step_capture(exchange_.way, world_, device_->device(), device_->stream(), place.time_limit);
  for (const program::CallList& list : program_.lists) {
    bind_inputs(list);
    bind_list(list, kernels);
  }
  if (!device_) return;
  stage_inputs();
  if (by_host())
    for (const List& list : lists_) reserve_staging(list);
}

Executor::~Executor() {
  if (!device_) return;
  device_->end();
  lists_.clear();  // what is captured holds the groups
  std::vector<comm::Communicator*> groups;
  for (const auto& [key, group] : groups_) groups.push_back(group.get());
  comm::end_nccl_groups(groups);
}

// All ranks make their groups in the same order, so that none waits for another's.
void Executor::make_groups(const Place& place) {
  for (const program::Body& body : program_.bodies)
    for (const Instruction& i : body.instructions)
      if (i.kind == Kind::collective) groups_[{i.group, i.channel}] = nullptr;
  auto open = open_messages(program_);
  const program::OrderedSums sums = program::ordered_sums(program_);
  for (auto& [key, group] : groups_) {
    const auto& [factors, channel] = key;
    // A message is open until both ranks have waited for it, so that as many of the other rank may be open as of this
    // one.
    comm::GroupOptions options;
    std::vector<int> ranks = program_.mesh.group(rank_, factors);
    if (!channel.empty()) {
      ranks = {rank_, peer_in(program_, key, rank_)};
      std::sort(ranks.begin(), ranks.end());
      options = {.collectives = 0, .messages = 2 * std::max<size_t>(1, open[key])};
    }
    options.in_rank_order = program_.sums_in_rank_order;
    if (const auto* sum = sums.find(factors); device_ && options.in_rank_order && channel.empty() && sum != nullptr)
      options.sums = {memory() + program_.state_bytes + program_.arena_bytes + sum->offset,
                      static_cast<size_t>(sum->bytes)};
    options.time_limit = place.time_limit;
    std::optional<DeviceSide::Watched> watched;  // the library waits for other ranks
    if (exchange_.way == comm::DeviceWay::nccl) watched.emplace(*device_);
    group = device_ && !by_host()
                ? comm::group_on_device(exchange_.way, *world_, device_->device(), device_->stream(), ranks, options)
                : world_->group(ranks, options);
  }
}

void Executor::bind_list(const program::CallList& list, const kernels::KernelSet& kernels) {
  List made;
  made.calls = &list;
  std::map<std::pair<int, int>, size_t> known;  // by body and slot
  std::set<std::pair<BufferId, int64_t>> filled;
  for (const program::Call& call : list.calls) {
    const auto [at, fresh] = known.try_emplace({call.body, call.slot}, bound_.size());
    const program::Body& body = body_of(call);
    if (fresh) {
      std::vector<Bound> bound;
      for (const Instruction& i : body.instructions) bound.push_back(bind({list, call, body}, i, kernels));
      if (device_) prepare(body, bound);
      bound_.push_back(std::move(bound));
    }
    bool inputs = false;
    for (const Instruction& i : body.instructions)
      for (BufferId b : i.ins)
        if (!program_.buffer(program_.root(b)).input.empty())
          inputs |= filled.insert({program_.root(b), call.micro_batch}).second;
    made.bound.push_back({at->second, inputs});
  }
  std::set<int64_t> seen;  // micro-batches that are filled
  for (size_t c = 0; c < list.calls.size(); ++c)
    if (made.bound[c].fills) seen.insert(list.calls[c].micro_batch);
  for (size_t c = 0; c < list.calls.size(); ++c)
    if (list.calls[c].micro_batch >= 0) made.bound[c].fills |= seen.insert(list.calls[c].micro_batch).second;
  lists_.push_back(std::move(made));
}

comm::Communicator& Executor::group_of(const Instruction& i) {
  return *groups_.at({i.group, i.channel});
}

std::byte* Executor::address(BufferId id, const program::CallList& list, int slot) const {
  return bind::address_of(program_, id, list, slot, rank_, memory());
}

View Executor::view(BufferId id, const program::CallList& list, int slot) const {
  return {address(id, list, slot), program_.buffer(id).type};
}

View Executor::state_view(BufferId id) const {
  const BufferId root = program_.root(id);
  const program::Buffer& of = program_.buffer(root);
  base::require(of.region != Region::file, "run", "\"{}\" lies in the file", of.name);
  if (of.region == Region::state) return {memory() + of.offset + program_.begin(id, rank_), program_.buffer(id).type};
  const program::CallList& train = program_.list(program::Step::train);
  const auto touches = [&](const program::Call& call) {
    const auto has = [&](const std::vector<BufferId>& list) {
      return std::any_of(list.begin(), list.end(), [&](BufferId b) { return program_.root(b) == root; });
    };
    const std::vector<Instruction>& all = body_of(call).instructions;
    return std::any_of(all.begin(), all.end(), [&](const Instruction& i) { return has(i.ins) || has(i.outs); });
  };
  const auto last = std::find_if(train.calls.rbegin(), train.calls.rend(), touches);
  base::require(last != train.calls.rend(), "run", "no call touches \"{}\"", of.name);
  return view(id, train, last->slot);
}

Executor::Bound Executor::bind(const Site& site, const Instruction& i, const kernels::KernelSet& kernels) {
  if (i.kind == Kind::compute)
    return {bind::bind_kernel(program_, site.body, i, kernels, rank_,
                              [&](BufferId id) { return address(id, site.list, site.call.slot); })};
  Bound b;
  for (BufferId id : i.ins)
    if (!in_file(id)) b.ins.push_back(view(id, site.list, site.call.slot));
  for (BufferId id : i.outs)
    if (!in_file(id)) b.outs.push_back(view(id, site.list, site.call.slot));
  if (program::is_copy(i)) return b;
  b.communicator = &group_of(i);
  if (starts(i, Collective::halo)) bind_parts(i, b);
  return b;
}

void Executor::bind_parts(const Instruction& i, Bound& b) const {
  static_assert(program::kMostHaloMessages <= static_cast<int64_t>(comm::kMaxExchange));
  const auto row_bytes = [](const View& v) {
    return v.shape()[0].size == 0 ? 0 : static_cast<size_t>(v.type.bytes() / v.shape()[0].size);
  };
  const program::HaloRows rows = program::halo_rows(program_.mesh, i.cuts, rank_);
  const auto add = [&](const std::vector<program::HaloMessage>& messages, bool receives) {
    const size_t row = row_bytes(receives ? b.outs[0] : b.ins[0]);
    for (const program::HaloMessage& m : messages)
      b.parts.push_back({m.place, receives, static_cast<size_t>(m.first) * row, static_cast<size_t>(m.rows) * row});
  };
  add(rows.received, true);
  add(rows.sent, false);
}

namespace {

comm::Reduction reduction_of(const Instruction& i) {
  switch (i.reduction) {
    case program::Reduction::sum:
      return comm::Reduction::sum;
    case program::Reduction::max:
      return comm::Reduction::max;
  }
  throw base::InternalError("run", "no reduction {}", static_cast<int>(i.reduction));
}

}  // namespace

void Executor::enqueue(const Instruction& i, Bound& b, Running& r) {
  comm::Communicator& c = *b.communicator;
  std::span<std::byte> in = b.ins.empty() ? std::span<std::byte>{} : bytes_of(b.ins[0]),
                       out = b.outs.empty() ? std::span<std::byte>{} : bytes_of(b.outs[0]);
  if (by_host()) {
    in = send_by_host(b, r);
    if (!out.empty()) out = {r.received->data(), out.size()};
  }
  if (waits_late()) c.next_waits(touched_.must_wait(c, b.ins, b.outs));
  switch (i.collective) {
    case Collective::all_reduce:
      r.communication = c.all_reduce(in, out, b.ins[0].dtype(), reduction_of(i));
      return;
    case Collective::all_gather:
      r.communication = c.all_gather(in, out);
      return;
    case Collective::reduce_scatter:
      r.communication = c.reduce_scatter(in, out, b.ins[0].dtype(), reduction_of(i));
      return;
    case Collective::all_to_all:
      r.communication = c.all_to_all(in, out);
      return;
    case Collective::send:
      r.communication = c.send(in, 1 - c.rank());
      return;
    case Collective::receive:
      r.communication = c.receive(out, 1 - c.rank());
      return;
    case Collective::shift:
      r.communication = c.exchange(std::array{comm::Message::from((c.rank() + 1) % c.size(), out),
                                              comm::Message::to((c.rank() + c.size() - 1) % c.size(), in)});
      return;
    case Collective::halo: {
      std::array<comm::Message, comm::kMaxExchange> messages;
      for (size_t m = 0; m < b.parts.size(); ++m) {
        const Bound::Part& part = b.parts[m];
        messages[m] = part.receives ? comm::Message::from(part.rank, out.subspan(part.begin, part.bytes))
                                    : comm::Message::to(part.rank, in.subspan(part.begin, part.bytes));
      }
      r.communication = c.exchange({messages.data(), b.parts.size()});
      return;
    }
  }
  throw base::InternalError("run", "no collective {}", static_cast<int>(i.collective));
}

void Executor::enqueue_copy(const Instruction& i, const Bound& b, Running& r, int64_t micro_batch) {
  if (store_ && !r.copy.done) r.copy = store_->make_copy();
  switch (i.copy) {
    case program::Copy::fetch: {
      const int64_t from = program_.in_file(i.ins[0], micro_batch, rank_);
      store_ ? store_->fetch(r.copy, from, bytes_of(b.outs[0]))
             : void(r.ticket = file_->read(from, bytes_of(b.outs[0])));
      return;
    }
    case program::Copy::store: {
      const int64_t to = program_.in_file(i.outs[0], micro_batch, rank_);
      store_ ? store_->store(r.copy, to, bytes_of(b.ins[0])) : void(r.ticket = file_->write(to, bytes_of(b.ins[0])));
      return;
    }
  }
  throw base::InternalError("run", "no copy {}", static_cast<int>(i.copy));
}

void Executor::wait(const program::Body& body, const Instruction& i, Bound& b, Running& r) {
  if (device_) touched_.add(r.what->ins, r.what->outs);
  if (!b.communicator) return store_ ? store_->wait(r.copy) : file_->wait(r.ticket);
  try {
    b.communicator->wait(r.communication);
    if (by_host()) receive_by_host(b, r);
  } catch (const comm::Timeout& e) {
    const BufferId value = i.ins.empty() ? i.outs[0] : i.ins[0];
    comm::throw_timeout_of(
        rank_,
        fmt::format("{} of \"{}\" over {} ({}{})", name_of(i.collective), program_.buffer(value).name,
                    program_.mesh.name_of(i.group), body.name, i.layer < 0 ? "" : fmt::format(", layer {}", i.layer)),
        e);
  }
}

View Executor::state(std::string_view name) const {
  const program::StateInfo* s = program_.state(name);
  base::require(s != nullptr, "run", "no state \"{}\"", name);
  const View whole = state_view(s->buffer);
  if (!s->in_bucket) return whole;
  base::require(program_.buffer(s->buffer).layout.of(tensor::kFlat).empty(), "run",
                "state \"{}\" is split along its bucket", name);
  return {whole.data + s->first * tensor::size_of(whole.dtype()),
          {mesh::local_shape(program_.mesh, s->whole.shape, s->layout), whole.dtype()}};
}

double Executor::number(std::string_view name) const {
  const View at = state(name);
  if (!device_) return at.as<double>()[0];
  double value = 0;
  copy_to_host(at.data, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

void Executor::numbers(std::span<const std::string_view> names, std::span<double> values) const {
  if (!device_) {
    for (size_t i = 0; i < names.size(); ++i) values[i] = number(names[i]);
    return;
  }
  std::vector<const std::byte*> at;
  for (const std::string_view name : names) at.push_back(state(name).data);
  device_->read(at, values);
}

void Executor::ask(std::span<const std::string_view> names) {
  if (!device_) {
    for (const std::string_view name : names) answers_.push_back(number(name));
    return;
  }
  std::vector<const std::byte*> at;
  for (const std::string_view name : names) at.push_back(state(name).data);
  device_->ask(at);
}

void Executor::answer(std::span<double> values) {
  if (device_) return device_->answer(values);
  base::require(values.size() <= answers_.size(), "run", "an answer to no question");
  std::copy_n(answers_.begin(), values.size(), values.begin());
  answers_.erase(answers_.begin(), answers_.begin() + static_cast<std::ptrdiff_t>(values.size()));
}

void Executor::set_number(std::string_view name, double value) {
  const View at = state(name);
  if (!device_) {
    at.as<double>()[0] = value;
    return;
  }
  copy_from_host(at.data, std::as_bytes(std::span(&value, 1)));
}

void Executor::read_file(int64_t offset, std::span<std::byte> to) const {
  store_ ? store_->read(offset, to) : file_->wait(file_->read(offset, to));
}

void Executor::write_file(int64_t offset, std::span<const std::byte> from) const {
  store_ ? store_->write(offset, from) : file_->wait(file_->write(offset, from));
}

const Executor::List& Executor::list_of(program::Step step) const {
  for (const List& list : lists_)
    if (list.calls->step == step) return list;
  throw base::InternalError("run", "no list of calls \"{}\"", name_of(step));
}

Executor::Found Executor::find_input(const program::CallList& list, std::string_view name) const {
  for (const program::Call& call : list.calls)
    for (const Instruction& i : body_of(call).instructions)
      for (BufferId b : i.ins)
        if (program_.buffer(b).input == name) return {b, &call};
  return {};
}

Executor::Found Executor::find_output(const program::CallList& list, std::string_view name) const {
  Found found;
  for (const program::Call& call : list.calls)
    for (const Instruction& i : body_of(call).instructions)
      for (BufferId b : i.outs)
        if (program_.buffer(b).output == name) found = {b, &call};
  return found;
}

View Executor::output(program::Step step, std::string_view name) const {
  const program::CallList& list = program_.list(step);
  const Found found = find_output(list, name);
  base::require(found.call != nullptr, "run", "{} has no output \"{}\"", name_of(step), name);
  const View out = view(found.buffer, list, found.call->slot);
  if (!device_) return out;
  output_.resize(static_cast<size_t>(out.type.bytes()));
  copy_to_host(out.data, output_);
  return {output_.data(), out.type};
}

bool Executor::has_input(program::Step step, std::string_view name) const {
  return find_input(program_.list(step), name).call != nullptr;
}

bool Executor::has_output(program::Step step, std::string_view name) const {
  return find_output(program_.list(step), name).call != nullptr;
}

profile::Recorder* Executor::recorder_of(program::Step step) const {
  return recorder && recorder->step() == step ? recorder : nullptr;
}

void Executor::run(program::Step step, kernels::Numbers& numbers, Fill fill, const void* context) {
  List& list = list_of(step);
  if (device_) return run_on_device(list, numbers, fill, context);
  profile::Recorder* const recording = recorder_of(step);
  if (recording) recording->begin_list();
  for (size_t c = 0; c < list.bound.size(); ++c) {
    const program::Call& call = list.calls->calls[c];
    if (list.bound[c].fills) {
      if (recording) recording->begin_inputs(c);
      fill_inputs(*list.calls, call, fill, context);
      if (recording) recording->end_inputs(c);
    }
    if (numbers.batch_rows > 0) numbers.batch_offset = numbers.batch_rows * std::max<int64_t>(0, call.micro_batch);
    run_call(list, c, numbers, recording);
  }
  if (recording) recording->end_list();
}

void Executor::run_call(const List& list, size_t number, kernels::Numbers& numbers, profile::Recorder* recording) {
  const program::Call& call = list.calls->calls[number];
  const program::Body& body = body_of(call);
  std::vector<Bound>& bound = bound_[list.bound[number].bound];
  if (recording) recording->begin_call();
  const bool grouped = device_ && !marks_ && !watch;
  for (size_t i = 0; i < bound.size(); ++i) {
    const Instruction& instruction = body.instructions[i];
    if (device_) device_->watch_anew();
    if (grouped && instruction.launch > 1) {
      launch_group(body, i, bound, numbers);
      i += static_cast<size_t>(instruction.launch) - 1;
    } else {
      run_instruction(call, body, instruction, bound[i], numbers);
    }
    if (recording) recording->end_instruction();
    if (marks_) times_->mark();
    const bool computes = instruction.kind == Kind::compute;
    if (watch && (computes || instruction.kind == Kind::wait)) watch({*list.calls, call, body, instruction});
    if (!computes || groups_.empty()) continue;
    groups_.begin()->second->progress();  // that of all groups
    if (recording) recording->end_progress();
  }
}

void Executor::run_instruction(const program::Call& call, const program::Body& body, const Instruction& instruction,
                               Bound& b, kernels::Numbers& numbers) {
  if (instruction.kind == Kind::wait) {
    Running& r = running(instruction, call.micro_batch);
    if (!waits_late()) return wait(body, instruction, b, r);
    return awaited_.push_back({&body, &instruction, &b, &r});
  }
  if (instruction.kind != Kind::compute) {
    Running& r = running(instruction, call.micro_batch);
    if (!awaited_.empty()) enqueue_waits_of(instruction, b, &r);
    r.started = started_++;
    r.what = &b;
    return instruction.kind == Kind::collective ? enqueue(instruction, b, r)
                                                : enqueue_copy(instruction, b, r, call.micro_batch);
  }
  prepare_to_run(body, instruction, b);
  if (b.seq >= 0 && !device_) b.indices[static_cast<size_t>(b.seq)].index.begin_at(b.seq_begin + numbers.position);
  if (ranges_) name_for_profiler(body, instruction);
  b.kernel->run(call_of(instruction, b, numbers, device_ ? &device_->stream() : nullptr));
  if (ranges_) ranges_->end();
}

kernels::KernelCall Executor::call_of(const Instruction& instruction, const Bound& b, const kernels::Numbers& numbers,
                                      device::Stream* stream) {
  return {.ins = b.ins,
          .outs = b.outs,
          .attributes = instruction.attributes,
          .indices = b.indices,
          .accumulate = b.accumulate,
          .workspace = b.workspace,
          .numbers = numbers,
          .team = team_,
          .stream = stream,
          .later = device_ ? device_->numbers() : nullptr,
          .moved = device_ ? b.moved_dim() : std::string_view(),
          .tf32 = tf32_,
          .kind = b.kernel->kind};
}

// Libraries choose their algorithms here, so that no step does. What is measured differs from rank to rank, and is not
// asked for where all are to have the same bits.
void Executor::prepare(const program::Body& body, std::span<Bound> bound) {
  device::NoStream nothing(!program_.sums_in_rank_order);
  const kernels::Numbers numbers;
  // Loading a kernel may wait for all that the device does, and so for a message that is waited for there: where stages
  // send to each other, all are loaded before.
  const bool loads = exchange_.way == comm::DeviceWay::nccl && program_.mesh.stages() > 1;
  for (size_t i = 0; i < bound.size(); ++i)
    if (bound[i].kernel != nullptr && (loads || bound[i].kernel->prepares))
      bound[i].kernel->run(call_of(body.instructions[i], bound[i], numbers, &nothing));
  for (size_t i = 0; i < bound.size() && loads; ++i)  // and those of libraries, which load theirs when they run
    if (bound[i].kernel != nullptr && bound[i].kernel->prepares)
      bound[i].kernel->run(call_of(body.instructions[i], bound[i], numbers, &device_->stream()));
  if (loads) device_->synchronize();
}

}  // namespace kintsugi::run
