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
constexpr int64_t kLeastProgress = 1000;  // nanoseconds: omit shorter slices

bool is_receive(const Instruction& i) {
  return program::is_message(i) && i.collective == program::Collective::receive;
}

// Equal on all members.
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

uint64_t MeasuredTrace::thread_of(const program::Queue& queue) {
  const auto [at, fresh] = threads_.try_emplace(queue, 0);
  if (fresh) {
    const bool file = queue.kind == program::QueueKind::copy;
    const std::string axes = file ? "file" : p_.mesh.name_of(queue.group);
    at->second = new_thread(queue.channel.empty() ? axes : axes + ": " + queue.channel);
  }
  return at->second;
}

void MeasuredTrace::add(const MeasuredStep& step) {
  const profile::Interval& whole = step.times.whole;
  out_.begin(compute_, whole.begin + step.offset, fmt::format("step {}", step.number));
  add_calls(step);
  out_.end(compute_, whole.end + step.offset);
  add_transfers(step);
}

void MeasuredTrace::add_calls(const MeasuredStep& step) {
  const profile::StepTimes& times = step.times;
  size_t n = 0;
  for (const auto& [position, call, body] : program::walk(p_, p_.list(times.step))) {
    if (const profile::Interval& inputs = times.inputs[position]; inputs.end > 0) {
      out_.begin(compute_, inputs.begin + step.offset, "inputs");
      out_.end(compute_, inputs.end + step.offset);
    }
    if (body.instructions.empty()) continue;
    const size_t last = n + body.instructions.size() - 1;
    out_.begin(compute_, times.instructions[n].begin + step.offset, program::describe(p_, call));
    for (const Instruction& i : body.instructions) add_instruction(step, n++, i);
    out_.end(compute_, times.instructions[last].progressed + step.offset);
  }
}

void MeasuredTrace::add_instruction(const MeasuredStep& step, size_t n, const Instruction& i) {
  const InstructionTimes& t = step.times.instructions[n];
  const profile::Wait& wait = step.waits[n];
  const profile::Started& started = step.started[n];
  TraceNotes notes = notes_of(p_, i, t.end - t.begin);
  if (!started.members.empty()) notes.add("members", std::ssize(started.members));
  // A receive may start before its send: its flow ends where it proceeds.
  const bool flows = !started.members.empty() && !is_receive(i);
  out_.begin(compute_, t.begin + step.offset, name_in_trace(i), flows ? Flow::through : Flow::none,
             flows ? flow_of(started.key, step.number) : 0, notes);
  if (wait.waited_for >= 0) {
    out_.begin(compute_, t.begin + step.offset, fmt::format("waiting for rank {}", wait.waited_for));
    out_.end(compute_, wait.until + step.offset);
  }
  out_.end(compute_, t.end + step.offset);
  if (t.progressed - t.end < kLeastProgress) return;
  out_.begin(compute_, t.end + step.offset, "moving transfers on");
  out_.end(compute_, t.progressed + step.offset);
}

// A queue is in order: each transfer is done when a later one is.
void MeasuredTrace::add_transfers(const MeasuredStep& step) {
  std::vector<Transfer> transfers;
  size_t n = 0;
  program::for_each_instruction(p_, p_.list(step.times.step), [&](const auto&, size_t, const Instruction& i) {
    if (i.kind == Kind::wait)
      transfers.push_back({.started = step.waits[n].started,
                           .waited = n,
                           .instruction = &i,
                           .thread = thread_of(program::awaited_queue(i)),
                           .begin = step.waits[n].last_came + step.offset,
                           .end = step.times.instructions[n].end + step.offset});
    ++n;
  });
  std::ranges::sort(transfers, {}, &Transfer::started);
  std::map<uint64_t, int64_t> end;  // by thread
  for (auto t = transfers.rbegin(); t != transfers.rend(); ++t) {
    const auto later = end.try_emplace(t->thread, t->end).first;
    later->second = t->end = std::min(t->end, later->second);
  }
  end.clear();
  for (Transfer& t : transfers) {
    // A flow ends after it begins.
    t.begin = std::min(std::max(t.begin + (is_receive(*t.instruction) ? 1 : 0), end[t.thread]), t.end);
    end[t.thread] = t.end;
    add_transfer(step, t);
  }
}

void MeasuredTrace::add_transfer(const MeasuredStep& step, const Transfer& transfer) {
  const Instruction& i = *transfer.instruction;
  TraceNotes notes;
  if (const program::BufferId value = program::value_of(i); value != program::kNoBuffer)
    notes.add("value", p_.buffer(value).name).add("bytes", p_.buffer(value).bytes());
  const bool receives = is_receive(i);
  out_.begin(transfer.thread, transfer.begin, name_of(i), receives ? Flow::ends : Flow::none,
             receives ? flow_of(step.started[transfer.started].key, step.number) : 0, notes);
  out_.end(transfer.thread, transfer.end);
}

}  // namespace kintsugi::report
