#include "kintsugi/lower/group_launches.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "kintsugi/base/environment.h"
#include "kintsugi/base/thread_team.h"
#include "kintsugi/bind/bound_kernel.h"
#include "kintsugi/program/stage_words.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::Program;

namespace {

// Kernels decide by types, shapes and the relative placement of operands, and are called in a stream that enqueues
// nothing, so the memory need not exist. It begins at a multiple of every alignment that a kernel asks for.
std::byte* planned_memory() {
  return reinterpret_cast<std::byte*>(uintptr_t{1} << 32);
}

// A body as it is bound in one slot on one rank.
using BoundBody = std::vector<bind::BoundKernel>;

BoundBody bind_body(const Program& p, const Body& body, const program::CallList& list, int slot, int rank,
                    const kernels::KernelSet& kernels) {
  BoundBody bound;
  for (const Instruction& i : body.instructions) {
    if (i.kind != program::Kind::compute) {
      bound.emplace_back();
      continue;
    }
    bound.push_back(bind::bind_kernel(p, body, i, kernels, rank, [&](BufferId id) {
      return bind::address_of(p, id, list, slot, rank, planned_memory());
    }));
  }
  return bound;
}

// How often the instructions of the program read each buffer of the arena; an output of the run is read once more.
std::vector<int64_t> count_reads(const Program& p) {
  std::vector<int64_t> reads(p.buffers.size());
  for (const Body& body : p.bodies)
    for (const Instruction& i : body.instructions)
      for (const BufferId b : i.ins) ++reads[static_cast<size_t>(p.root(b))];
  for (size_t b = 0; b < p.buffers.size(); ++b)
    if (!p.buffers[b].output.empty()) ++reads[static_cast<size_t>(p.root(static_cast<BufferId>(b)))];
  return reads;
}

class Groups {
 public:
  Groups(const Program& p, const kernels::KernelSet& kernels) : p_(p), kernels_(kernels), reads_(count_reads(p)) {}

  // The number of instructions from each on, 0 for those that an earlier launch performs.
  std::vector<int> of(size_t body_id) {
    const Body& body = p_.bodies[body_id];
    bind_everywhere(static_cast<int>(body_id));
    std::vector<int> launches(body.instructions.size(), 1);
    if (bound_.empty()) return launches;
    for (size_t i = 0; i < launches.size();) {
      const size_t count = group_from(body, i);
      launches[i] = static_cast<int>(count);
      for (size_t other = i + 1; other < i + count; ++other) launches[other] = 0;
      i += count;
    }
    return launches;
  }

 private:
  void bind_everywhere(int body) {
    bound_.clear();
    const std::vector<int> ranks = program::ranks_of(p_);
    for (const program::CallList& list : p_.lists) {
      std::set<int> slots;
      for (const program::Call& call : list.calls)
        if (call.body == body) slots.insert(call.slot);
      for (const int slot : slots)
        for (const int rank : std::set<int>{ranks.front(), ranks.back()})
          bound_.push_back(bind_body(p_, p_.bodies[static_cast<size_t>(body)], list, slot, rank, kernels_));
    }
  }

  // Whether a value that one of the first `before` instructions makes is read outside the group.
  bool read_elsewhere(const Body& body, size_t first, size_t before, size_t count) const {
    const std::span<const Instruction> group = std::span(body.instructions).subspan(first, count);
    for (const Instruction& i : group.first(before))
      for (const BufferId out : i.outs) {
        const BufferId value = p_.root(out);
        if (p_.buffer(value).region != program::Region::arena) continue;
        int64_t within = 0;
        for (const Instruction& reader : group)
          within += std::count_if(reader.ins.begin(), reader.ins.end(),
                                  [&](BufferId b) { return p_.root(b) == value; });
        if (within != reads_[static_cast<size_t>(value)]) return true;
      }
    return false;
  }

  const kernels::Kernel* kernel_at(size_t i) const { return i < bound_[0].size() ? bound_[0][i].kernel : nullptr; }

  // Whether instruction i may join the group [first, i) whose own kernel begins at `own`.
  bool independent(size_t first, size_t own, size_t i) const {
    return std::all_of(bound_.begin(), bound_.end(), [&](const BoundBody& b) {
      for (size_t other = first; other < i; ++other) {
        const bool reads = other >= own && bind::touch(b[i].ins, b[other].outs);
        if (reads || bind::touch(b[i].outs, b[other].outs) || bind::touch(b[i].outs, b[other].ins)) return false;
      }
      return true;
    });
  }

  bool accepts(const kernels::Kernel& own, const Body& body, size_t first, size_t count) const {
    return std::all_of(bound_.begin(), bound_.end(), [&](const BoundBody& b) {
      std::vector<kernels::KernelCall> calls;
      for (size_t i = first; i < first + count; ++i) calls.push_back(call_of(body.instructions[i], b[i]));
      return own.together(calls);
    });
  }

  kernels::KernelCall call_of(const Instruction& i, const bind::BoundKernel& b) const {
    return {.ins = b.ins,
            .outs = b.outs,
            .attributes = i.attributes,
            .indices = b.indices,
            .accumulate = b.accumulate,
            .workspace = b.workspace,
            .numbers = numbers_,
            .team = team_,
            .stream = &nothing_,
            .later = reinterpret_cast<const kernels::Numbers*>(planned_memory() + p_.aligned(p_.bytes())),
            .moved = b.moved_dim(),
            .tf32 = kernels_.tf32(),
            .kind = b.kernel->kind};
  }

  // The largest group from `first` on: up to kMostBefore instructions that its kernel performs first, then its own.
  size_t group_from(const Body& body, size_t first) const {
    for (size_t before = kernels::kMostBefore + 1; before-- > 0;) {
      const kernels::Kernel* own = kernel_at(first + before);
      if (own == nullptr || own->together == nullptr) continue;
      const auto joins = [&](size_t i) {
        const auto& kinds = own->begins_with;
        return kernel_at(i) != nullptr && std::find(kinds.begin(), kinds.end(), kernel_at(i)->kind) != kinds.end() &&
               independent(first, first + before, i);
      };
      bool fits = true;
      for (size_t i = first; i < first + before && fits; ++i) fits = joins(i);
      if (!fits) continue;
      size_t count = before;
      while (count < before + kernels::kMostTogether && kernel_at(first + count) == own &&
             independent(first, first + before, first + count))
        ++count;
      for (; count > std::max<size_t>(before, 1); --count)
        if (!read_elsewhere(body, first, before, count) && accepts(*own, body, first, count)) return count;
    }
    return 1;
  }

  const Program& p_;
  const kernels::KernelSet& kernels_;
  std::vector<int64_t> reads_;    // by root
  std::vector<BoundBody> bound_;  // the body in each slot, on the first and the last rank
  const kernels::Numbers numbers_ = {};
  mutable base::ThreadTeam team_{1};
  mutable device::NoStream nothing_;
};

}  // namespace

void group_launches(Program& p, const kernels::KernelSet& kernels) {
  if (!p.on_device) return;
  if (base::environment_word("lower", "KINTSUGI_LAUNCHES", {"each", "joined"}) == "each") return;
  Groups groups(p, kernels);
  for (size_t body = 0; body < p.bodies.size(); ++body) {
    const std::vector<int> launches = groups.of(body);
    for (size_t i = 0; i < launches.size(); ++i) p.bodies[body].instructions[i].launch = launches[i];
  }
}

}  // namespace kintsugi::lower
