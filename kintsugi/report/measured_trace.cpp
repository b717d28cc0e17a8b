#include "kintsugi/report/measured_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kintsugi/program/describe.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::report {

using profile::InstructionTimes;
using program::Instruction;
using program::Kind;
using program::Program;

namespace {

constexpr uint64_t kTracksOfRank = 1u << 16;

// The same on all members.
uint64_t flow_of(const profile::TransferKey& key, int64_t step) {
  uint64_t hash = key.channel;
  for (const uint64_t part : {static_cast<uint64_t>(key.number), static_cast<uint64_t>(step)})
    hash = (hash ^ (part + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2))) * 0xff51afd7ed558ccdu;
  return hash | 1;
}

std::string name_in_trace(const Instruction& i) {
  const std::string name(name_of(i));
  switch (i.kind) {
    case Kind::compute:
      return name;
    case Kind::collective:
    case Kind::copy:
      return "start " + name;
    case Kind::wait:
      return "wait for " + name;
  }
  return name;
}

TraceNotes notes_of(const Program& p, const Instruction& i, int64_t nanoseconds) {
  TraceNotes notes;
  notes.add("phase", tensor::name_of(i.phase)).add("layer", static_cast<int64_t>(i.layer));
  if (const program::BufferId value = i.outs.empty() ? program::value_of(i) : i.outs[0]; value != program::kNoBuffer)
    notes.add("value", p.buffer(value).name);
  const double seconds = 1e-9 * static_cast<double>(std::max<int64_t>(1, nanoseconds));
  if (i.cost.flops > 0) notes.add("FLOPs", i.cost.flops).add("GFLOP/s", i.cost.flops / seconds / 1e9);
  if (i.cost.memory_bytes > 0)
    notes.add("memory bytes", i.cost.memory_bytes).add("GB/s", i.cost.memory_bytes / seconds / 1e9);
  return notes;
}

}  // namespace

MeasuredTrace::MeasuredTrace(const Program& p, int rank)
    : p_(p),
      rank_(rank),
      out_(static_cast<uint64_t>(rank) + 1),
      process_((static_cast<uint64_t>(rank) + 1) * kTracksOfRank) {
  const std::string place = p.mesh.ranks() == 1 ? "" : fmt::format(" (stage {})", p.stage);
  out_.process(process_, rank + 1, fmt::format("rank {}{}", rank, place));
  compute_ = new_thread("compute");
}

uint64_t MeasuredTrace::new_thread(const std::string& name) {
  const int number = ++num_threads_;
  const uint64_t track = process_ + static_cast<uint64_t>(number);
  out_.thread(track, rank_ + 1, (rank_ + 1) * static_cast<int>(kTracksOfRank >> 4) + number, name, process_);
  return track;
}

uint64_t MeasuredTrace::track(const std::string& queue, int64_t begin, int64_t end) {
  auto known = std::ranges::find(lanes_, queue, &std::pair<std::string, std::vector<Lane>>::first);
  if (known == lanes_.end()) known = lanes_.insert(lanes_.end(), {queue, {}});
  for (Lane& lane : known->second)
    if (lane.end <= begin) {
      lane.end = end;
      return lane.track;
    }
  known->second.push_back({new_thread(queue), end});
  return known->second.back().track;
}

void MeasuredTrace::add(const MeasuredStep& step) {
  const profile::Interval& whole = step.recorder.whole();
  out_.begin(compute_, whole.begin + step.offset, fmt::format("step {}", step.number));
  add_calls(step);
  out_.end(compute_, whole.end + step.offset);

  std::vector<Transfer> transfers;
  size_t n = 0;
  program::for_each_instruction(p_, p_.list(step.recorder.step()), [&](const auto&, size_t, const Instruction& i) {
    if (i.kind == Kind::wait) transfers.push_back({step.waits[n].started, n, &i});
    ++n;
  });
  std::ranges::sort(transfers, {}, &Transfer::started);
  for (const Transfer& transfer : transfers) add_transfer(step, transfer);
}

void MeasuredTrace::add_calls(const MeasuredStep& step) {
  const profile::Recorder& recorder = step.recorder;
  size_t n = 0;
  for (const auto& [position, call, body] : program::walk(p_, p_.list(recorder.step()))) {
    if (const profile::Interval& inputs = recorder.inputs()[position]; inputs.end > 0) {
      out_.begin(compute_, inputs.begin + step.offset, "inputs");
      out_.end(compute_, inputs.end + step.offset);
    }
    if (body.instructions.empty()) continue;
    const size_t last = n + body.instructions.size() - 1;
    out_.begin(compute_, recorder.instructions()[n].begin + step.offset, program::describe(p_, call));
    for (const Instruction& i : body.instructions) add_instruction(step, n++, i);
    out_.end(compute_, recorder.instructions()[last].progressed + step.offset);
  }
}

void MeasuredTrace::add_instruction(const MeasuredStep& step, size_t n, const Instruction& i) {
  const InstructionTimes& t = step.recorder.instructions()[n];
  const profile::Wait& wait = step.waits[n];
  out_.begin(compute_, t.begin + step.offset, name_in_trace(i), Flow::none, 0, notes_of(p_, i, t.end - t.begin));
  if (wait.waited_for >= 0) {
    out_.begin(compute_, t.begin + step.offset, fmt::format("waiting for rank {}", wait.waited_for));
    out_.end(compute_, wait.until + step.offset);
  }
  out_.end(compute_, t.end + step.offset);
}

void MeasuredTrace::add_transfer(const MeasuredStep& step, const Transfer& transfer) {
  const Instruction& i = *transfer.instruction;
  const profile::Started& started = step.started[transfer.started];
  const int64_t begin = step.recorder.instructions()[transfer.started].begin + step.offset;
  const int64_t end = step.recorder.instructions()[transfer.waited].end + step.offset;
  const bool copy = program::is_copy(i);
  // A receive may be started before its send: the flow ends where it proceeds, which is after the send began.
  const bool receives = program::is_message(i) && i.collective == program::Collective::receive;
  const int64_t came = step.waits[transfer.waited].last_came + step.offset + (receives ? 1 : 0);
  const int64_t all_there = std::clamp(came, begin, end);
  const uint64_t thread = track(copy ? "file" : p_.mesh.name_of(i.group), begin, end);
  const uint64_t flow = copy ? 0 : flow_of(started.key, step.number);
  TraceNotes notes;
  if (const program::BufferId value = program::value_of(i); value != program::kNoBuffer)
    notes.add("value", p_.buffer(value).name).add("bytes", p_.buffer(value).bytes());
  if (!started.members.empty()) notes.add("members", std::ssize(started.members));
  out_.begin(thread, begin, name_of(i), copy || receives ? Flow::none : Flow::through, flow, notes);
  out_.begin(thread, all_there, "transfer", receives ? Flow::ends : Flow::none, flow);
  out_.end(thread, end);
  out_.end(thread, end);
}

}  // namespace kintsugi::report
