#include "kintsugi/program/walk.h"

#include <algorithm>
#include <set>
#include <utility>

namespace kintsugi::program {

size_t num_instructions(const Program& p, const CallList& list) {
  size_t n = 0;
  for (const VisitedCall& call : walk(p, list)) n += call.body.instructions.size();
  return n;
}

std::vector<VisitedCall> first_calls(const Program& p, const CallList& list) {
  std::vector<VisitedCall> first;
  std::vector<bool> called(p.bodies.size(), false);
  for (const VisitedCall& call : walk(p, list)) {
    if (called[static_cast<size_t>(call.call.body)]) continue;
    called[static_cast<size_t>(call.call.body)] = true;
    first.push_back(call);
  }
  return first;
}

std::vector<int64_t> num_calls(const Program& p, const CallList& list) {
  std::vector<int64_t> calls(p.bodies.size(), 0);
  for (const Call& call : list.calls) ++calls[static_cast<size_t>(call.body)];
  return calls;
}

int64_t last_micro_batch(const CallList& list) {
  int64_t last = 0;
  for (const Call& call : list.calls) last = std::max(last, call.micro_batch);
  return last;
}

std::set<int> events_between_bodies(const Program& p) {
  std::set<int> events;
  for (const Body& body : p.bodies) {
    std::set<int> started;
    for (const Instruction& i : body.instructions) {
      if (i.kind == Kind::collective) started.insert(i.event);
      if (i.kind == Kind::wait && i.awaited == Kind::collective && !started.contains(i.event)) events.insert(i.event);
    }
  }
  return events;
}

namespace {

// The roots of the inputs that a body reads, in order.
std::vector<BufferId> inputs_of(const Program& p, const Body& body) {
  std::vector<BufferId> inputs;
  for (const Instruction& i : body.instructions)
    for (BufferId b : i.ins) {
      const BufferId root = p.root(b);
      if (!p.buffer(root).input.empty() && std::find(inputs.begin(), inputs.end(), root) == inputs.end())
        inputs.push_back(root);
    }
  return inputs;
}

}  // namespace

std::vector<std::vector<BufferId>> first_inputs(const Program& p, const CallList& list) {
  std::vector<std::vector<BufferId>> by_body(p.bodies.size()), by_call(list.calls.size());
  for (const VisitedCall& call : first_calls(p, list))
    by_body[static_cast<size_t>(call.call.body)] = inputs_of(p, call.body);
  std::set<std::pair<BufferId, int64_t>> filled;  // by micro-batch
  for (const auto& [position, call, body] : walk(p, list))
    for (BufferId root : by_body[static_cast<size_t>(call.body)])
      if (filled.insert({root, call.micro_batch}).second) by_call[position].push_back(root);
  return by_call;
}

std::vector<bool> fills(const Program& p, const CallList& list) {
  const std::vector<std::vector<BufferId>> inputs = first_inputs(p, list);
  std::vector<bool> fills(list.calls.size(), false);
  std::set<int64_t> begun = {-1};  // micro-batches; calls of the whole step have no beginning
  for (const auto& [position, call, body] : walk(p, list))
    if (!inputs[position].empty()) {
      fills[position] = true;
      begun.insert(call.micro_batch);
    }
  for (const auto& [position, call, body] : walk(p, list))
    if (begun.insert(call.micro_batch).second) fills[position] = true;
  return fills;
}

}  // namespace kintsugi::program
