#include "kintsugi/lower/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "kintsugi/program/order.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::in_order;
using program::Instruction;
using program::Program;

namespace {

int find(const Program& p, std::string_view name) {
  for (size_t i = 0; i < p.bodies.size(); ++i)
    if (p.bodies[i].name == name) return static_cast<int>(i);
  return -1;
}

// Where a buffer lies in its root: what one place is added to first replaces what was there.
using Spot = std::pair<BufferId, int64_t>;

// The first addition to each accumulator replaces what it held.
void replace_first(const Program& p, Body& body, std::set<Spot>& replaced) {
  for (Instruction& i : body.instructions)
    for (size_t j = 0; j < i.outs.size(); ++j) {
      const BufferId root = p.root(i.outs[j]);
      if (((i.accumulate >> j) & 1u) && p.buffer(root).region == program::Region::state &&
          replaced.insert({root, p.begin(i.outs[j], 0)}).second)
        i.accumulate &= ~(1u << j);
    }
}

// Each reduction of an accumulator stands where its last addition is done.
void hoist(const Program& p, Body& body, const Body& reduce) {
  std::vector<Instruction>& list = body.instructions;
  for (const Instruction& r : reduce.instructions) {
    size_t at = list.size();
    while (at > 0 && !in_order(p, list[at - 1], r)) --at;
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), r);
  }
}

bool adds_in_tree(const Body& body) {
  return std::any_of(body.instructions.begin(), body.instructions.end(),
                     [](const Instruction& i) { return i.attributes.has("tree"); });
}

// Sums of a binary tree after micro-batch m: for each level whose like waits already, the two are added; what comes of
// it waits one level higher, or is the accumulator's where it is the last.
Body tree_of(const Body& body, int64_t m) {
  Body made = {.name = body.name, .at_position = body.at_position, .instructions = {}};
  size_t level = 0;
  while ((m >> level) & 1) ++level;
  for (const Instruction& i : body.instructions) {
    if (!i.attributes.has("tree")) {
      made.instructions.push_back(i);
      continue;
    }
    Instruction add = i;
    add.attributes = {};
    for (size_t l = 0; l < level; ++l) {
      add.ins = {i.outs[1 + l]};
      add.outs = i.ins;
      add.accumulate = 1;
      made.instructions.push_back(add);
    }
    add.ins = i.ins;
    add.outs = {i.outs[level + 1 == i.outs.size() ? 0 : 1 + level]};
    add.accumulate = 0;
    made.instructions.push_back(add);
  }
  return made;
}

}  // namespace

void schedule(Program& p, int64_t micro_batches) {
  const int forward = find(p, "forward"), backward = find(p, "backward"), update = find(p, "update");
  int reduce = find(p, "reduce");
  if (reduce >= 0 && p.bodies[static_cast<size_t>(reduce)].instructions.empty()) reduce = -1;
  if (forward >= 0) {
    const auto add = [&](Body body, const std::string& name) {
      body.name = name;
      p.bodies.push_back(std::move(body));
      return static_cast<int>(p.bodies.size()) - 1;
    };
    const auto body = [&](int i) { return p.bodies[static_cast<size_t>(i)]; };
    if (adds_in_tree(body(forward)) || adds_in_tree(body(backward))) {
      program::CallList train = {.name = "train", .calls = {}};
      std::map<std::pair<int, int64_t>, int> made;  // by body and how many levels are added
      for (int64_t m = 0; m < micro_batches; ++m)
        for (int b : {forward, backward}) {
          const int64_t ones = std::countr_one(static_cast<uint64_t>(m));
          const auto [at, fresh] = made.try_emplace({b, ones}, 0);
          if (fresh) {
            Body variant = tree_of(body(b), m);
            if (b == backward && m == micro_batches - 1 && reduce >= 0) hoist(p, variant, body(reduce));
            at->second = add(std::move(variant), fmt::format("{}.tree{}", body(b).name, ones));
          }
          train.calls.push_back({at->second, m});
        }
      train.calls.push_back({update, -1});
      p.lists.push_back(std::move(train));
    } else {
      std::set<Spot> replaced;
      Body forward_first = body(forward), backward_first = body(backward), last = body(backward);
      replace_first(p, forward_first, replaced);
      replace_first(p, backward_first, replaced);
      if (micro_batches == 1) last = backward_first;
      if (reduce >= 0) hoist(p, last, body(reduce));
      program::CallList train = {.name = "train", .calls = {}};
      const int f = add(std::move(forward_first), "forward.first");
      const int b = micro_batches == 1 ? -1 : add(std::move(backward_first), "backward.first");
      const int l = micro_batches > 1 && reduce < 0
                        ? backward
                        : add(std::move(last), micro_batches == 1 ? "backward.only" : "backward.last");
      for (int64_t m = 0; m < micro_batches; ++m) {
        train.calls.push_back({m == 0 ? f : forward, m});
        train.calls.push_back({m == micro_batches - 1 ? l : m == 0 ? b : backward, m});
      }
      train.calls.push_back({update, -1});
      p.lists.push_back(std::move(train));
    }
  }
  for (std::string_view name : {"evaluate", "prefill", "decode"})
    if (const int i = find(p, name); i >= 0) p.lists.push_back({.name = std::string(name), .calls = {{i, 0}}});
}

}  // namespace kintsugi::lower
