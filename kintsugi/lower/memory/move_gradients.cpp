#include "kintsugi/lower/memory/move_gradients.h"

#include <algorithm>
#include <map>
#include <vector>

#include "kintsugi/lower/cost.h"
#include "kintsugi/lower/order/copies.h"
#include "kintsugi/program/walk.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::lower {

using program::BufferId;
using program::CallList;
using program::Instruction;
using program::Kind;
using program::kNoBuffer;
using program::Program;
using program::Region;

namespace {

struct Bytes {
  int64_t begin, end;
};

// The beginning of an accumulator in a step.
struct Beginning {
  int body = -1;  // with the first instruction that touches it
  size_t at = 0;
  bool read = false;
  std::vector<Bytes> replaced = {};  // before any of it is read
};

using Beginnings = std::map<BufferId, Beginning>;  // by root

Beginnings beginnings_of(const Program& p, const CallList& train) {
  Beginnings all;
  for (const program::StateInfo& s : p.states)
    if (s.kind == program::StateKind::gradient && p.buffer(p.root(s.buffer)).region == Region::state)
      all[p.root(s.buffer)];
  program::for_each_instruction(p, train, [&](const program::VisitedCall& call, size_t at, const Instruction& i) {
    const auto touch = [&](BufferId b) -> Beginning* {
      const auto found = all.find(p.root(b));
      if (found == all.end()) return nullptr;
      Beginning& of = found->second;
      if (of.body < 0) {
        of.body = call.call.body;
        of.at = at;
      }
      return &of;
    };
    for (const BufferId b : i.ins)
      if (Beginning* of = touch(b)) of->read = true;
    for (size_t j = 0; j < i.outs.size(); ++j) {
      Beginning* of = touch(i.outs[j]);
      const bool replaces = i.kind != Kind::wait && !((i.accumulate >> j) & 1u) && !p.is_part(i.outs[j]);
      if (!of || of->read || !replaces) continue;
      const int64_t begin = p.begin(i.outs[j], 0);
      of->replaced.push_back({begin, begin + p.buffer(i.outs[j]).bytes()});
    }
  });
  std::erase_if(all, [](const auto& entry) { return entry.second.body < 0; });
  return all;
}

// The bytes of an accumulator that are not overwritten, as views of it.
std::vector<BufferId> add_gaps(Program& p, BufferId accumulator, std::vector<Bytes> replaced) {
  const int64_t size = tensor::size_of(p.buffer(accumulator).type.dtype), end = p.buffer(accumulator).bytes();
  std::sort(replaced.begin(), replaced.end(), [](Bytes a, Bytes b) { return a.begin < b.begin; });
  replaced.push_back({end, end});
  std::vector<BufferId> gaps;
  int64_t at = 0;
  for (const Bytes& next : replaced) {
    if (next.begin > at) gaps.push_back(add_part(p, accumulator, at / size, (next.begin - at) / size));
    at = std::max(at, next.end);
  }
  return gaps;
}

Instruction zeros(const Program& p, const graph::OpTable& operations, std::vector<BufferId> to,
                  const Instruction& before) {
  Instruction fill = {.kernel = "fill",
                      .outs = std::move(to),
                      .attributes = {{"value", 0.0}},
                      .layer = before.layer,
                      .phase = before.phase};
  fill.cost = cost_of(p, operations, fill);
  return fill;
}

}  // namespace

void move_gradients(Program& p, const graph::OpTable& operations) {
  const CallList* train = p.find(program::Step::train);
  if (!train || program::last_micro_batch(*train) > 0) return;
  const Beginnings all = beginnings_of(p, *train);
  std::map<int, std::multimap<size_t, Instruction>> fills;  // [body]: instructions to insert, by position
  for (const auto& [accumulator, begins] : all) {
    if (std::vector<BufferId> gaps = add_gaps(p, accumulator, begins.replaced); !gaps.empty()) {
      const Instruction& first = p.bodies[static_cast<size_t>(begins.body)].instructions[begins.at];
      fills[begins.body].emplace(begins.at, zeros(p, operations, std::move(gaps), first));
    }
    p.buffer(accumulator).output = p.buffer(accumulator).name;  // compared after the step
  }
  for (size_t b = 0; b < p.buffers.size(); ++b)
    if (all.contains(p.root(static_cast<BufferId>(b)))) p.buffers[b].region = Region::arena;
  for (const auto& [body, before] : fills) {
    std::vector<Instruction>& list = p.bodies[static_cast<size_t>(body)].instructions;
    std::vector<Instruction> merged;
    for (size_t at = 0; at < list.size(); ++at) {
      for (auto [fill, end] = before.equal_range(at); fill != end; ++fill) merged.push_back(fill->second);
      merged.push_back(std::move(list[at]));
    }
    list = std::move(merged);
  }
}

}  // namespace kintsugi::lower
