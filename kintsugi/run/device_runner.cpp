#include "kintsugi/run/device_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/comm/through_host.h"
#include "kintsugi/device/no_memory.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/program/stage_words.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::run {

using comm::DeviceWay;
using comm::StepWay;

namespace {

std::unique_ptr<DeviceSide> make_side(const program::Program& p, device::Device& device, const Place& place) {
  try {
    return std::make_unique<DeviceSide>(device, p.bytes(), p.staged_bytes, place.time_limit);
  } catch (const device::NoMemory& refused) {
    const int stages = p.mesh.stages();
    throw base::UserError("device", "{}; rank {}{} needs {} bytes: {}", refused.said(), place.rank(),
                          stages > 1 ? fmt::format(" (stage {} of {})", p.stage, stages) : "",
                          base::group_digits(p.bytes()), program::parts_in_words(program::memory_table(p)));
  }
}

}  // namespace

DeviceRunner::DeviceRunner(const program::Program& p, const kernels::KernelSet& kernels, base::ThreadTeam& team,
                           const Place& place)
    : p_(p),
      team_(team),
      rank_(place.rank()),
      tf32_(kernels.tf32()),
      exchange_(place.exchange),
      side_(make_side(p, *kernels.device(), place)),
      open_(p) {
  base::require((p.exchange == program::Exchange::through_host) == (exchange_.way == DeviceWay::by_host), "run",
                "a program whose ranks exchange {} is run by ranks that do not", name_of(p.exchange));
  if (p.file_bytes > 0) store_ = std::make_unique<DeviceStore>(*side_, p.file_bytes);
  groups_ = std::make_unique<Groups>(
      p, rank_, place.time_limit, memory() + p.state_bytes + p.arena_bytes,
      [&](std::span<const int> ranks, const comm::GroupOptions& options, const program::OpenTransfers& open) {
        return make_group(place, ranks, options, open);
      });
  if (exchange_.way == DeviceWay::nccl)
    side_->set_meanwhile([this] {
      groups_->progress_each();
      if (capture_) capture_->progress();
    });
  if (std::ranges::any_of(p.lists, [](const program::CallList& list) { return list.order.captured; }))
    capture_ = comm::step_capture(exchange_.way, place.world, side_->device(), side_->stream(), place.time_limit);
  bound_ = std::make_unique<BoundProgram>(p, rank_, memory(), kernels, *groups_);
  prepare(kernels);
  for (const program::CallList& list : p.lists) {
    List& state = lists_.emplace_back(List{.in_place = program::in_place(p, list), .by_launch = {}, .graph = {}});
    state.by_launch = state.in_place;
    state.by_launch.joined = list.order.joined;
  }
}

DeviceRunner::~DeviceRunner() {
  side_->end();
  lists_.clear();  // captured steps reference the groups
  groups_->end();
}

std::unique_ptr<comm::Communicator> DeviceRunner::make_group(const Place& place, std::span<const int> ranks,
                                                             const comm::GroupOptions& options,
                                                             const program::OpenTransfers& open) {
  if (exchange_.way == DeviceWay::by_host)
    return comm::through_host(
        place.world->group(ranks, options), side_->device(), side_->stream(),
        {.transfers = open.count, .bytes = open.bytes, .synchronize = [side = side_.get()] { side->synchronize(); }});
  std::optional<DeviceSide::Watched> watched;  // the library waits for other ranks
  if (exchange_.way == DeviceWay::nccl) watched.emplace(*side_);
  return comm::group_on_device(exchange_.way, *place.world, side_->device(), side_->stream(), ranks, options);
}

// Libraries select their algorithms here, so that no step does. Measurements differ between ranks, and are not used if
// all ranks must have the same bits.
void DeviceRunner::prepare(const kernels::KernelSet& kernels) {
  device::NoStream nothing(!p_.sums_in_rank_order);
  const kernels::Numbers numbers;
  // Loading a kernel may wait for all work of the device, including a message: if stages exchange messages, all kernels
  // are loaded first.
  const bool loads = exchange_.way == DeviceWay::nccl && p_.mesh.stages() > 1;
  const auto run = [&](BoundProgram::BoundBody& body, bool all, device::Stream& stream) {
    for (size_t i = 0; i < body.instructions.size(); ++i) {
      const BoundInstruction& b = body.instructions[i];
      if (b.kernel != nullptr && (all || b.kernel->prepares))
        b.kernel->run(call_of(
            body.body.instructions[i], b,
            {.numbers = numbers, .team = team_, .tf32 = kernels.tf32(), .stream = &stream, .later = side_->numbers()}));
    }
  };
  for (BoundProgram::BoundBody& body : bound_->bodies()) {
    run(body, loads, nothing);
    if (!loads) continue;
    run(body, false, side_->stream());  // libraries load their kernels when they run
    side_->synchronize();
  }
}

DeviceRunner::List& DeviceRunner::state_of(const BoundList& list) const {
  return lists_[static_cast<size_t>(&list - bound_->lists().data())];
}

tensor::View DeviceRunner::on_host(const tensor::View& view) const {
  values_.resize(static_cast<size_t>(view.type.bytes()));
  side_->read(view.data, values_);
  return {values_.data(), view.type};
}

std::byte* DeviceRunner::input_address(const program::CallList& list, const program::Call& call,
                                       program::BufferId buffer) const {
  for (const program::StagedInput& input : list.order.inputs)
    if (&list.calls[input.call] == &call && input.buffer == buffer) return side_->staged_on_host() + input.offset;
  throw base::InternalError("run", "input \"{}\" is not staged", p_.buffer(buffer).name);
}

void DeviceRunner::run(program::Step step, kernels::Numbers& numbers, const Filler& filler, const Probe& probe) {
  const BoundList& list = bound_->list(step, numbers.micro_batches);
  List& state = state_of(list);
  if (probe.recorder) {
    const profile::StepTimes& times = probe.recorder->times();
    if (!times_) times_ = std::make_unique<DeviceTimes>(*side_, times.inputs.size() + times.instructions.size());
    times_->begin();
    probe.recorder->begin_list();
  }
  side_->next_slot();
  for (const BoundCall& call : list.bound) {
    if (!call.fills) continue;
    begin_call(numbers, call.call);
    filler.fill(list.calls, call.call);
  }
  side_->send(numbers);
  switch (way_of(list, state, probe)) {
    case StepWay::enqueue: {
      const bool by_launch = probe.watch == nullptr && probe.recorder && probe.recorder->by_launch();
      const program::DeviceOrder& order = !probe.observes() ? list.calls.order
                                          : by_launch       ? state.by_launch
                                                            : state.in_place;
      enqueue(list, order, numbers, probe);
      if (probe.recorder) take_times(list, order, probe.recorder->to_fill());
      return;
    }
    case StepWay::capture:
      capture_->begin();
      try {
        enqueue(list, list.calls.order, numbers, probe);
      } catch (...) {
        capture_->drop();
        throw;
      }
      state.graph = capture_->end();
      state.captured = true;
      [[fallthrough]];
    case StepWay::launch:
      return capture_->launch(state.graph.get());
  }
}

// The same on all ranks. The first run is not captured: allocations of libraries at first use are not part of a step.
StepWay DeviceRunner::way_of(const BoundList& list, List& state, const Probe& probe) const {
  if (!list.calls.order.captured) return StepWay::enqueue;
  const bool again = !probe.observes() && state.runs++ > 0;
  return capture_->agree(!again ? StepWay::enqueue : state.captured ? StepWay::launch : StepWay::capture);
}

void DeviceRunner::enqueue(const BoundList& list, const program::DeviceOrder& order, kernels::Numbers& numbers,
                           const Probe& probe) {
  const EnqueueTarget target = {.program = p_,
                                .rank = rank_,
                                .team = team_,
                                .tf32 = tf32_,
                                .side = *side_,
                                .store = store_.get(),
                                .groups = *groups_,
                                .open = open_,
                                .times = probe.recorder ? times_.get() : nullptr};
  Enqueuer(target, list, order, probe).run(numbers);
}

// There is a point after the inputs of the first call and of each that has some, and one after each launch.
void DeviceRunner::take_times(const BoundList& list, const program::DeviceOrder& order, profile::StepTimes& times) {
  const std::vector<int64_t> points = times_->take();
  auto point = points.begin();
  auto instruction = times.instructions.begin();
  int64_t now = times.whole.begin;
  for (size_t c = 0; c < list.bound.size(); ++c) {
    times.inputs[c] = {now, now};
    const bool copies = std::ranges::find(order.inputs, c, &program::StagedInput::call) != order.inputs.end();
    if (copies || c == 0) now = times.inputs[c].end = std::max(now, *point++);
    for (size_t i = 0; i < list.bound[c].instructions.size(); ++i, ++instruction) {
      const bool in_launch = order.joined && list.bound[c].body.instructions[i].launch == 0;
      const int64_t end = in_launch ? now : std::max(now, *point++);
      *instruction = {.begin = now, .end = end, .progressed = end};
      now = end;
    }
  }
  times.whole.end = now;
}

}  // namespace kintsugi::run
