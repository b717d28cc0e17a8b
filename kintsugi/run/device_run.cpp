// How an executor runs a list of calls on a device: all inputs of the step go there in one copy, then all calls are
// enqueued; from the second time on by one launch of what is captured then.
#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/overlap.h"
#include "kintsugi/profile/recorder.h"
#include "kintsugi/program/staging.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::run {

using bind::bytes_of;
using bind::touch;

// Where the inputs of each list lie in a slot.
void Executor::stage_inputs() {
  for (List& list : lists_)
    for (const auto& [call, buffer, offset] : program::staging(program_, *list.calls).inputs) {
      const auto in = std::find_if(inputs_.begin(), inputs_.end(),
                                   [&](const Input& i) { return i.step == list.calls->step && i.buffer == buffer; });
      base::require(in != inputs_.end(), "run", "input \"{}\" is not filled", program_.buffer(buffer).name);
      list.staged.push_back({&list.calls->calls[call], static_cast<size_t>(in - inputs_.begin()), offset,
                             program_.buffer(buffer).bytes()});
    }
}

// Where the host writes an input of a call.
std::byte* Executor::input_address(const Input& in, const program::CallList& list, const program::Call& call) const {
  if (!device_) return address(in.buffer, list, call.slot);
  for (const List::Staged& staged : list_of(list.step).staged)
    if (staged.call == &call && &inputs_[staged.input] == &in) return device_->staged_on_host() + staged.offset;
  throw base::InternalError("run", "input \"{}\" is not staged", in.name);
}

void Executor::run_on_device(List& list, kernels::Numbers& numbers, Fill fill, const void* context) {
  profile::Recorder* const recording = recorder_of(list.calls->step);
  marks_ = recording != nullptr;
  if (recording) {
    const profile::StepTimes& times = recording->times();
    if (!times_) times_ = std::make_unique<DeviceTimes>(*device_, times.inputs.size() + times.instructions.size());
    times_->begin();
    recording->begin_list();
  }
  device_->next_slot();
  for (size_t c = 0; c < list.bound.size(); ++c) {
    if (!list.bound[c].fills) continue;
    const program::Call& call = list.calls->calls[c];
    if (numbers.batch_rows > 0) numbers.batch_offset = numbers.batch_rows * std::max<int64_t>(0, call.micro_batch);
    fill_inputs(*list.calls, call, fill, context);
  }
  device_->send(numbers);
  switch (way_of(list)) {
    case comm::StepWay::enqueue:
      enqueue_calls(list, numbers);
      if (recording) take_times(list, recording->to_fill());
      return;
    case comm::StepWay::capture:
      capture_->begin();
      try {
        enqueue_calls(list, numbers);
      } catch (...) {
        capture_->drop();
        throw;
      }
      list.graph = capture_->end();
      list.captured = true;
      [[fallthrough]];
    case comm::StepWay::launch:
      return capture_->launch(list.graph.get());
  }
}

// The same on all ranks. The first time nothing is captured: what libraries make when they are first used is not work
// of the step.
comm::StepWay Executor::way_of(List& list) const {
  using comm::StepWay;
  if (!capture_) return StepWay::enqueue;
  const bool looked_at = watch || recorder_of(list.calls->step);
  const bool again = !looked_at && list.runs++ > 0;
  return capture_->agree(!again ? StepWay::enqueue : list.captured ? StepWay::launch : StepWay::capture);
}

// The staged inputs of a call, from `next` on; `next` is then behind them.
std::span<const Executor::List::Staged> Executor::staged_of(const List& list, size_t call, size_t& next) {
  const size_t first = next;
  while (next < list.staged.size() && list.staged[next].call == &list.calls->calls[call]) ++next;
  return std::span(list.staged).subspan(first, next - first);
}

void Executor::enqueue_calls(const List& list, kernels::Numbers& numbers) {
  const DeviceSide::Watched watched(*device_);
  size_t next = 0;
  touched_.begin_list();
  for (size_t c = 0; c < list.bound.size(); ++c) {
    const program::Call& call = list.calls->calls[c];
    const auto inputs = staged_of(list, c, next);
    if (!inputs.empty()) enqueue_waits();
    for (const List::Staged& staged : inputs) {
      std::byte* const to = address(inputs_[staged.input].buffer, *list.calls, call.slot);
      device_->stream().copy(to, device_->staged_on_device() + staged.offset, staged.bytes);
      touched_.add({to, static_cast<size_t>(staged.bytes)}, true);
    }
    if (numbers.batch_rows > 0) numbers.batch_offset = numbers.batch_rows * std::max<int64_t>(0, call.micro_batch);
    if (marks_ && (c == 0 || !inputs.empty())) times_->mark();
    run_call(list, c, numbers, nullptr);
  }
  enqueue_waits();
  if (store_) store_->join();
}

// Before an instruction that computes is enqueued.
void Executor::prepare_to_run(const program::Body& body, const program::Instruction& i, Bound& b) {
  if (!awaited_.empty()) enqueue_waits_of(i, b, nullptr);
  if (!device_) return;
  touched_.add(b.ins, b.outs, b.workspace);
  if (device_->stream().checks()) announce(body, i, b);
}

void Executor::launch_group(const program::Body& body, size_t first, std::span<Bound> bound,
                            const kernels::Numbers& numbers) {
  std::vector<kernels::KernelCall> calls;
  for (size_t i = first; i < first + static_cast<size_t>(body.instructions[first].launch); ++i) {
    prepare_to_run(body, body.instructions[i], bound[i]);
    calls.push_back(call_of(body.instructions[i], bound[i], numbers, &device_->stream()));
  }
  if (ranges_) name_for_profiler(body, body.instructions[first]);
  const bool done = bound[first + calls.size() - 1].kernel->together(calls);
  base::require(done, "run", "{}: the kernel does not launch {} instructions from {} on as one", body.name,
                calls.size(), first);
  if (ranges_) ranges_->end();
}

// A wait is enqueued before the first instruction that touches memory of what is waited for, or at the end of the list:
// until then another wait may have made it needless. What is in the same queue as that instruction is in order with it.
// Where instructions are timed or looked at, each wait is enqueued where it stands.
void Executor::enqueue_waits_of(const program::Instruction& i, const Bound& b, const Running* started) {
  const auto later = [&](const Awaited& a) {
    const Bound& other = *a.running->what;
    if (a.running == started) return false;
    if (i.kind != program::Kind::compute && other.communicator == b.communicator) return true;
    const auto conflicts = [&](const tensor::View& v, bool written) {
      const std::span<const std::byte> bytes = bytes_of(v);
      return touch(b.outs, bytes) || base::overlap(b.workspace, bytes) || (written && touch(b.ins, bytes));
    };
    return std::none_of(other.ins.begin(), other.ins.end(), [&](const auto& v) { return conflicts(v, false); }) &&
           std::none_of(other.outs.begin(), other.outs.end(), [&](const auto& v) { return conflicts(v, true); });
  };
  enqueue_waits(std::stable_partition(awaited_.begin(), awaited_.end(), later));
}

void Executor::enqueue_waits() {
  enqueue_waits(awaited_.begin());
}

// The newest comes first: queues are in order, so what its queue had before it is then known to be done.
void Executor::enqueue_waits(std::vector<Awaited>::iterator first) {
  const auto newer = [](const Awaited& a, const Awaited& b) { return a.running->started > b.running->started; };
  std::sort(first, awaited_.end(), newer);
  for (auto a = first; a != awaited_.end(); ++a) wait(*a->body, *a->instruction, *a->bound, *a->running);
  awaited_.erase(first, awaited_.end());
}

// There is a point behind the inputs of the first call and of each that has some, and one behind each instruction.
void Executor::take_times(const List& list, profile::StepTimes& times) {
  const std::vector<int64_t> points = times_->take();
  auto point = points.begin();
  auto instruction = times.instructions.begin();
  int64_t now = times.whole.begin;
  size_t next = 0;
  for (size_t c = 0; c < list.bound.size(); ++c) {
    times.inputs[c] = {now, now};
    if (!staged_of(list, c, next).empty() || c == 0) now = times.inputs[c].end = std::max(now, *point++);
    for (size_t i = 0; i < body_of(list.calls->calls[c]).instructions.size(); ++i, ++instruction) {
      const int64_t end = std::max(now, *point++);
      *instruction = {.begin = now, .end = end, .progressed = end};
      now = end;
    }
  }
  times.whole.end = now;
}

// Communication of ranks that are processes, through the host: what is sent is copied there once it is made, what was
// received is copied back. The host waits for the device at each; a device that can send by itself need not.
void Executor::reserve_staging(const List& list) {
  const auto reserve = [&](std::unique_ptr<device::Memory>& memory, const std::vector<program::BufferId>& buffers) {
    if (buffers.empty()) return;
    const int64_t bytes = program_.buffer(buffers[0]).bytes();
    if (!memory || memory->bytes() < bytes) memory = device_->pinned(bytes);
  };
  for (const program::Call& call : list.calls->calls)
    for (const program::Instruction& i : body_of(call).instructions) {
      if (i.kind != program::Kind::collective) continue;
      Running& r = running(i, call.micro_batch);
      reserve(r.sent, i.ins);
      reserve(r.received, i.outs);
    }
}

void Executor::name_for_profiler(const program::Body& body, const program::Instruction& i) const {
  ranges_->begin(fmt::format("{} of {} ({}{})", i.kernel, i.outs.empty() ? "" : program_.buffer(i.outs[0]).name,
                             body.name, i.layer < 0 ? "" : fmt::format(", layer {}", i.layer))
                     .c_str());
}

// What a kernel is about to do, for a device that checks the order of accesses.
void Executor::announce(const program::Body& body, const program::Instruction& i, const Bound& b) {
  std::vector<std::span<const std::byte>> reads, writes;
  for (const tensor::View& v : b.ins)
    if (v.data != nullptr) reads.push_back(bytes_of(v));
  for (const tensor::View& v : b.outs)
    if (v.data != nullptr) writes.push_back(bytes_of(v));
  if (!b.workspace.empty()) writes.push_back(b.workspace);
  device_->stream().announce(
      {.what = fmt::format("{} of {} ({}{}, rank {})", i.kernel, i.outs.empty() ? "" : program_.buffer(i.outs[0]).name,
                           body.name, i.layer < 0 ? "" : fmt::format(", layer {}", i.layer), rank_),
       .reads = reads,
       .writes = writes});
}

std::span<std::byte> Executor::send_by_host(const Bound& b, Running& r) {
  if (b.ins.empty()) return {};
  const std::span<std::byte> here(r.sent->data(), static_cast<size_t>(b.ins[0].type.bytes()));
  device_->stream().copy(here.data(), b.ins[0].data, b.ins[0].type.bytes());
  device_->synchronize();
  return here;
}

void Executor::receive_by_host(const Bound& b, Running& r) {
  if (!b.outs.empty()) device_->stream().copy(b.outs[0].data, r.received->data(), b.outs[0].type.bytes());
}

}  // namespace kintsugi::run
