#include "kintsugi/profile/measure.h"

#include <algorithm>
#include <map>

#include "kintsugi/base/error.h"
#include "kintsugi/profile/blocks.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::profile {

using program::Instruction;
using program::Kind;
using program::Program;

std::vector<Wait> waits_of(const Program& p, const StepTimes& times, std::span<const Started> started,
                           const Arrivals& arrivals, int rank, int64_t offset) {
  std::vector<Wait> waits;
  std::map<program::EventKey, size_t> open;
  program::for_each_instruction(p, p.list(times.step), [&](const auto& call, size_t, const Instruction& i) {
    const size_t n = waits.size();
    const InstructionTimes& t = times.instructions[n];
    Wait& wait = waits.emplace_back(Wait{.started = n, .until = t.begin, .last_came = t.begin});
    if (i.kind == Kind::collective || i.kind == Kind::copy) open[program::key_of(i, call.call)] = n;
    if (i.kind != Kind::wait) return;
    const auto at = open.find(program::key_of(i, call.call));
    base::require(at != open.end(), "profile", "a wait for what was not started");
    wait.started = at->second;
    if (started[wait.started].members.empty()) {  // a copy
      wait.last_came = times.instructions[wait.started].begin;
      return;
    }
    const Arrivals::Last last = arrivals.last(started[wait.started]);
    wait.last_came = std::min(last.time - offset, t.end);
    wait.until = std::clamp(wait.last_came, t.begin, t.end);
    if (wait.until > t.begin && last.rank != rank) wait.waited_for = last.rank;
  });
  return waits;
}

namespace {

double in_seconds(int64_t nanoseconds) {
  return 1e-9 * static_cast<double>(nanoseconds);
}

constexpr const char* kProgress = "moving transfers on";

OperationTime& row_of(std::vector<OperationTime>& rows, std::string_view operation, const Instruction& i, Part part) {
  const std::string_view phase = tensor::name_of(i.phase);
  for (OperationTime& row : rows)
    if (row.part == part && row.operation == operation && row.phase == phase) return row;
  return rows.emplace_back(
      OperationTime{.operation = std::string(operation), .phase = std::string(phase), .part = part});
}

TransferTime& row_of(std::vector<TransferTime>& rows, const Program& p, const Instruction& i) {
  const std::string over = program::is_copy(i) ? "file" : p.mesh.name_of(i.group);
  for (TransferTime& row : rows)
    if (row.operation == name_of(i) && row.over == over) return row;
  return rows.emplace_back(TransferTime{.operation = std::string(name_of(i)), .over = over});
}

bool is_task(const program::Body& body) {
  using program::Work;
  return body.does(Work::forward) || body.does(Work::backward) || body.does(Work::weight);
}

TaskTime& row_of(std::vector<TaskTime>& rows, const program::Body& body) {
  for (TaskTime& row : rows)
    if (row.chunk == body.chunk && row.work == name_of(body.work)) return row;
  return rows.emplace_back(TaskTime{.work = std::string(name_of(body.work)), .chunk = body.chunk});
}

double& seconds_for(std::vector<WaitedFor>& rows, int rank) {
  for (WaitedFor& row : rows)
    if (row.rank == rank) return row.seconds;
  return rows.emplace_back(WaitedFor{.rank = rank}).seconds;
}

// Whether an earlier instruction's launch executes it.
bool follows_in_launch(const Program& p, program::Step step, const Instruction& i) {
  return i.launch == 0 && p.list(step).order.joined;
}

// One row per launch of each body that is called. row_of: [body][instruction].
std::vector<InstructionTime> instruction_rows(const Program& p, program::Step step,
                                              std::vector<std::vector<size_t>>& row_of) {
  std::vector<InstructionTime> rows;
  row_of.resize(p.bodies.size());
  for (const auto& [position, call, body] : program::first_calls(p, p.list(step))) {
    std::vector<size_t>& row_at = row_of[static_cast<size_t>(call.body)];
    for (size_t at = 0; at < body.instructions.size(); ++at) {
      const Instruction& i = body.instructions[at];
      if (follows_in_launch(p, step, i)) {
        row_at.push_back(rows.size() - 1);
        ++rows.back().launched;
        continue;
      }
      row_at.push_back(rows.size());
      const program::BufferId value = i.kind == Kind::compute && !i.outs.empty() ? i.outs[0] : program::value_of(i);
      rows.push_back({.body = body.name,
                      .at = static_cast<int64_t>(at),
                      .operation = (i.kind == Kind::wait ? "wait for " : "") + std::string(name_of(i)),
                      .phase = std::string(tensor::name_of(i.phase)),
                      .value = value == program::kNoBuffer ? "" : p.buffer(value).name,
                      .layer = i.layer,
                      .communicates = i.kind != Kind::compute});
    }
  }
  return rows;
}

template <typename T>
void scale_all(std::vector<T>& rows, double factor, auto... fields) {
  for (T& row : rows) ((row.*fields *= factor), ...);
}

}  // namespace

Measure::Measure(const Program& p, program::Step step, int rank, bool with_instructions)
    : p_(p), step_(step), started_(started_by(p, step, rank)) {
  sum_.rank = rank;
  sum_.stage = p.stage;
  for (const program::Body& body : p.bodies)
    for (const Instruction& i : body.instructions)
      if (i.kind == Kind::collective || i.kind == Kind::copy) wire_bytes_[i.event] = i.cost.wire_bytes;
  if (with_instructions) sum_.instructions = instruction_rows(p, step, row_of_);
}

void Measure::add(const StepTimes& times, std::span<const Wait> waits) {
  base::require((times.whole.begin != 0 || times.whole.end != 0) && waits.size() == times.instructions.size(),
                "profile", "a step that was not recorded");
  if (times.whole.length() <= 0) return;  // the clock stopped or went backwards
  ++sum_.steps;
  const double whole = in_seconds(times.whole.length());
  sum_.seconds += whole;
  double known = 0;
  for (const Interval& inputs : times.inputs) {
    sum_.inputs += in_seconds(inputs.length());
    known += in_seconds(inputs.length());
  }
  size_t n = 0;
  const Instruction* launch = nullptr;  // the first instruction of the current launch
  program::for_each_instruction(p_, p_.list(step_), [&](const auto& call, size_t at, const Instruction& i) {
    const bool follows = follows_in_launch(p_, step_, i);
    if (!follows) launch = &i;
    const InstructionTimes& t = times.instructions[n];
    const Wait& wait = waits[n];
    ++n;
    const double waiting = in_seconds(wait.until - t.begin), rest = in_seconds(t.end - wait.until);
    const double progress = in_seconds(t.progressed - t.end);
    known += waiting + rest + progress;
    add_operation(*launch, i.cost, follows ? 0 : 1, wait, waiting, rest);
    if (progress > 0) row_of(sum_.operations, kProgress, i, Part::communication).seconds += progress;
    if (i.kind != Kind::compute) add_transfer(i, wait, t, waiting);
    if (is_task(call.body)) {
      TaskTime& task = row_of(sum_.tasks, call.body);
      if (at == 0) task.calls += 1;
      if (i.kind == Kind::compute) task.seconds += rest;
    }
    if (sum_.instructions.empty()) return;
    InstructionTime& row = sum_.instructions[row_of_[static_cast<size_t>(call.call.body)][at]];
    row.calls += follows ? 0 : 1;
    row.seconds += waiting + rest;
    row.waiting += waiting;
    row.flops += i.cost.flops;
    row.memory_bytes += i.cost.memory_bytes;
    row.wire_bytes += i.cost.wire_bytes;
  });
  sum_.between += std::max(0.0, whole - known);  // rounding may make it slightly negative
  sum_.queues = blocks_of(p_, times, waits);
}

void Measure::add_operation(const Instruction& i, const program::Cost& cost, int calls, const Wait& wait,
                            double waiting, double rest) {
  const bool computes = i.kind == Kind::compute;
  OperationTime& row = row_of(sum_.operations, name_of(i), i, computes ? Part::compute : Part::communication);
  row.seconds += rest;
  if (i.kind != Kind::wait) {
    row.calls += calls;
    row.flops += cost.flops;
    row.memory_bytes += cost.memory_bytes;
    row.wire_bytes += cost.wire_bytes;
  }
  if (wait.waited_for < 0) {
    row.seconds += waiting;  // this rank arrived last
    return;
  }
  OperationTime& idle = row_of(sum_.operations, name_of(i), i, Part::waiting);
  idle.calls += 1;
  idle.seconds += waiting;
  seconds_for(sum_.waits, wait.waited_for) += waiting;
}

void Measure::add_transfer(const Instruction& i, const Wait& wait, const InstructionTimes& t, double waiting) {
  TransferTime& row = row_of(sum_.transfers, p_, i);
  if (i.kind != Kind::wait) {
    row.calls += 1;
    row.wire_bytes += i.cost.wire_bytes;
    return;
  }
  row.seconds += in_seconds(t.end - wait.until);
  row.waiting += waiting;
  const int64_t under_way = t.end - wait.last_came;
  if (under_way <= 0 || std::max<int64_t>(0, t.begin - wait.last_came) > under_way / 10) return;
  row.timed += 1;
  row.timed_seconds += in_seconds(under_way);
  row.timed_bytes += moved_bytes(i);
}

// For a wait: bytes sent, or received if it sends nothing.
double Measure::moved_bytes(const Instruction& i) const {
  const auto started = wire_bytes_.find(i.event);
  const double sent = started == wire_bytes_.end() ? 0 : started->second;
  if (sent > 0 || i.outs.empty()) return sent;
  return static_cast<double>(p_.buffer(i.outs[0]).bytes());
}

RankProfile Measure::take() const {
  RankProfile mean = sum_;
  const double factor = 1.0 / static_cast<double>(std::max<int64_t>(1, mean.steps));
  mean.seconds *= factor, mean.inputs *= factor, mean.between *= factor;
  scale_all(mean.operations, factor, &OperationTime::calls, &OperationTime::seconds, &OperationTime::flops,
            &OperationTime::memory_bytes, &OperationTime::wire_bytes);
  scale_all(mean.waits, factor, &WaitedFor::seconds);
  scale_all(mean.transfers, factor, &TransferTime::calls, &TransferTime::wire_bytes, &TransferTime::seconds,
            &TransferTime::waiting, &TransferTime::timed, &TransferTime::timed_seconds, &TransferTime::timed_bytes);
  scale_all(mean.tasks, factor, &TaskTime::calls, &TaskTime::seconds);
  scale_all(mean.instructions, factor, &InstructionTime::calls, &InstructionTime::seconds, &InstructionTime::waiting,
            &InstructionTime::flops, &InstructionTime::memory_bytes, &InstructionTime::wire_bytes);
  std::ranges::sort(mean.operations, std::ranges::greater(), &OperationTime::seconds);
  std::ranges::sort(mean.waits, {}, &WaitedFor::rank);
  return mean;
}

}  // namespace kintsugi::profile
