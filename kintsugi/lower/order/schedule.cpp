#include "kintsugi/lower/order/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/program/order.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::in_order;
using program::Instruction;
using program::Program;
using program::roots_of;
using program::Work;

namespace {

int find(const Program& p, Work work, int chunk) {
  for (size_t i = 0; i < p.bodies.size(); ++i)
    if (p.bodies[i].does(work) && p.bodies[i].chunk == chunk && p.bodies[i].variant_of < 0) return static_cast<int>(i);
  return -1;
}

bool is_of_micro_batch(Work work) {
  return work == Work::forward || work == Work::backward || work == Work::weight;
}

// An instruction of the body `reduce` that moves into a pass. late: depends on a collective there.
struct Sum {
  Instruction instruction;
  bool late = false;
};

// What moves into the pass that completes the accumulators, and what precedes the update: collectives that depend on
// another one, and everything after them. In a pass they would wait for it at once: for the reduction over `data`,
// which for norms is followed by one over `tensor`.
struct Sums {
  std::vector<Sum> in_pass;
  std::vector<Instruction> before_update;
};

Sums sums_of(const Program& p, const Body& reduce, bool has_update) {
  enum class Follows : uint8_t { pass, collective, second };
  Sums sums;
  std::map<BufferId, std::vector<std::pair<const Instruction*, Follows>>> touching;  // by root
  for (const Instruction& r : reduce.instructions) {
    Follows follows = Follows::pass;
    for (BufferId root : roots_of(p, r))
      for (const auto& [other, then] : touching[root])
        if (then > follows && in_order(p, *other, r)) follows = then;
    const bool late = has_update && follows == Follows::collective;
    if (follows == Follows::second || (late && is_collective(r))) {
      follows = Follows::second;
      sums.before_update.push_back(r);
    } else {
      sums.in_pass.push_back({r, late});
      if (is_collective(r)) follows = Follows::collective;
    }
    for (BufferId root : roots_of(p, r)) touching[root].push_back({&r, follows});
  }
  return sums;
}

// Inserts reductions into a body directly after the last instruction that each depends on: after the last addition to
// its accumulator. Late ones are inserted before the next layer's first, so that the pass continues meanwhile.
class Hoist {
 public:
  Hoist(const Program& p, Body& body, const std::vector<Sum>& sums) : p_(p), list_(body.instructions) {
    for (const Sum& s : sums)
      for (BufferId root : roots_of(p, s.instruction)) touching_[root];
    for (size_t at = 0; at < list_.size(); ++at)
      for (BufferId root : roots_of(p, list_[at]))
        if (const auto known = touching_.find(root); known != touching_.end()) known->second.push_back(at);
    before_.resize(list_.size() + 1);
    for (const Sum& s : sums) place(s);
    merge();
  }

 private:
  // Index of the next instruction in the list, and number of others inserted there before.
  using Position = std::pair<size_t, size_t>;

  void place(const Sum& sum) {
    const Instruction& r = sum.instruction;
    Position position = {0, 0};
    for (BufferId root : roots_of(p_, r)) {
      const std::vector<size_t>& all = touching_.at(root);
      const auto last = std::find_if(all.rbegin(), all.rend(), [&](size_t at) { return in_order(p_, list_[at], r); });
      if (last != all.rend()) position = std::max(position, Position{*last + 1, 0});
      for (const auto& [at, other] : placed_[root])
        if (in_order(p_, other->instruction, r)) {
          const std::vector<const Sum*>& there = before_[at];
          const auto index = std::find(there.begin(), there.end(), other) - there.begin();
          position = std::max(position, Position{at, static_cast<size_t>(index) + 1});
        }
    }
    std::vector<const Sum*>& there = before_[position.first];
    there.insert(there.begin() + static_cast<std::ptrdiff_t>(position.second), &sum);
    for (BufferId root : roots_of(p_, r)) placed_[root].push_back({position.first, &sum});
  }

  void merge() {
    std::vector<Instruction> merged;
    std::vector<const Instruction*> held;  // of one layer
    const auto release = [&] {
      for (const Instruction* late : held) merged.push_back(*late);
      held.clear();
    };
    for (size_t at = 0; at <= list_.size(); ++at) {
      for (const Sum* s : before_[at]) {
        if (!held.empty() && held.back()->layer != s->instruction.layer) release();
        if (s->late)
          held.push_back(&s->instruction);
        else
          merged.push_back(s->instruction);
      }
      if (at < list_.size()) merged.push_back(std::move(list_[at]));
    }
    release();
    list_ = std::move(merged);
  }

  const Program& p_;
  std::vector<Instruction>& list_;
  std::map<BufferId, std::vector<size_t>> touching_;                       // [root]: positions in the list
  std::map<BufferId, std::vector<std::pair<size_t, const Sum*>>> placed_;  // by root
  std::vector<std::vector<const Sum*>> before_;                            // [position]
};

bool adds_in_tree(const Body& body) {
  return std::any_of(body.instructions.begin(), body.instructions.end(),
                     [](const Instruction& i) { return i.adds_in_tree; });
}

// Additions of a binary tree after micro-batch m: at each level where another sum is waiting, the two are added; the
// result waits one level higher, or goes to the accumulator if it is the last.
Body tree_of(const Body& body, int64_t m) {
  Body made = body;
  made.instructions.clear();
  size_t level = 0;
  while ((m >> level) & 1) ++level;
  for (const Instruction& i : body.instructions) {
    if (!i.adds_in_tree) {
      made.instructions.push_back(i);
      continue;
    }
    Instruction add = i;
    add.adds_in_tree = false;
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

// Creates the variants of bodies for the first and last micro-batches.
class Variants {
 public:
  Variants(Program& p, const plan::Schedule& schedule)
      : p_(p), schedule_(schedule), update_(find(p, Work::update, p.stage)) {
    for (const Body& body : p.bodies) tree_ |= is_of_micro_batch(body.work) && adds_in_tree(body);
  }

  // The body for micro-batch m; called in call order.
  int of(int base, int64_t m) {
    const Body& body = p_.bodies[static_cast<size_t>(base)];
    const bool first = m == 0, last = m == schedule_.micro_batches - 1;
    // The accumulators of the chunk are complete there.
    const int reduce = last && ends(body) ? find(p_, Work::reduce, body.chunk) : -1;
    const bool reduces = reduce >= 0 && !p_.bodies[static_cast<size_t>(reduce)].instructions.empty();
    std::string name;
    if (tree_) {
      name = fmt::format("{}.tree{}{}", body.name, std::countr_one(static_cast<uint64_t>(m)), reduces ? ".last" : "");
    } else if (first) {
      name = body.name + (last && body.work != Work::forward ? ".only" : ".first");
    } else if (reduces) {
      name = body.name + ".last";
    } else {
      return base;
    }
    const auto [at, fresh] = made_.try_emplace(name, 0);
    if (!fresh) return at->second;
    Body variant = tree_ ? tree_of(body, m) : body;
    if (first && !tree_) overwrite_first(p_, variant, overwritten_);
    if (reduces) {
      const Sums sums = sums_of(p_, p_.bodies[static_cast<size_t>(reduce)], update_ >= 0);
      before_update_.insert(before_update_.end(), sums.before_update.begin(), sums.before_update.end());
      Hoist(p_, variant, sums.in_pass);
    }
    variant.name = name;
    variant.variant_of = base;
    p_.bodies.push_back(std::move(variant));
    return at->second = static_cast<int>(p_.bodies.size()) - 1;
  }

  // The body of the update, including what precedes it; -1: none. Call after all others.
  int update() {
    if (update_ < 0) return update_;
    std::vector<Instruction>& list = p_.bodies[static_cast<size_t>(update_)].instructions;
    list.insert(list.begin(), before_update_.begin(), before_update_.end());
    return update_;
  }

 private:
  bool ends(const Body& body) const {
    const bool apart = find(p_, Work::weight, body.chunk) >= 0;
    return body.work == (apart ? Work::weight : Work::backward);
  }

  Program& p_;
  const plan::Schedule& schedule_;
  const int update_;
  std::vector<Instruction> before_update_;
  bool tree_ = false;
  Overwritten overwritten_;
  std::map<std::string, int> made_;
};

Work work_of(const plan::Task& task) {
  switch (task.work) {
    case plan::Work::forward:
      return Work::forward;
    case plan::Work::backward:
      return Work::backward;
    case plan::Work::weight:
      return Work::weight;
  }
  throw base::InternalError("schedule", "a task without work");
}

}  // namespace

bool overwrite_first(const Program& p, Body& body, Overwritten& overwritten) {
  bool any = false;
  for (Instruction& i : body.instructions)
    for (size_t j = 0; j < i.outs.size(); ++j) {
      const BufferId root = p.root(i.outs[j]);
      if (((i.accumulate >> j) & 1u) && p.buffer(root).region == program::Region::state &&
          overwritten.insert({root, p.begin(i.outs[j], 0)}).second) {
        i.accumulate &= ~(1u << j);
        any = true;
      }
    }
  return any;
}

void schedule(Program& p, const plan::Schedule& schedule) {
  program::CallList train = {.step = program::Step::train, .calls = {}};
  Variants variants(p, schedule);
  for (const plan::Task& task : schedule.tasks[static_cast<size_t>(p.stage)])
    if (const int body = find(p, work_of(task), task.chunk); body >= 0)
      train.calls.push_back({variants.of(body, task.micro_batch), task.micro_batch});
  if (!train.calls.empty()) {
    if (const int update = variants.update(); update >= 0) train.calls.push_back({update, -1});
    p.lists.push_back(std::move(train));
  }
  using program::Step;
  for (const auto& [step, work] :
       {std::pair(Step::evaluate, Work::evaluate), std::pair(Step::sample, Work::sample),
        std::pair(Step::tasks, Work::tasks), std::pair(Step::prefill, Work::prefill),
        std::pair(Step::prefill_quarter, Work::prefill_quarter), std::pair(Step::score, Work::score),
        std::pair(Step::decode, Work::decode), std::pair(Step::decode_half, Work::decode_half),
        std::pair(Step::decode_quarter, Work::decode_quarter), std::pair(Step::decode_one, Work::decode_one)}) {
    program::CallList list = {.step = step, .calls = {}};
    for (int chunk = p.stage; chunk < schedule.stages * schedule.chunks; chunk += schedule.stages)
      if (const int body = find(p, work, chunk); body >= 0) list.calls.push_back({body, 0});
    if (!list.calls.empty()) p.lists.push_back(std::move(list));
  }
}

}  // namespace kintsugi::lower
