#include "kintsugi/lower/fuse/group_launches.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "kintsugi/base/environment.h"
#include "kintsugi/base/thread_team.h"
#include "kintsugi/bind/bound_kernel.h"
#include "kintsugi/lower/fuse/patterns.h"
#include "kintsugi/program/stage_words.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::Program;

namespace {

// Kernels decide by types, shapes and the relative placement of operands, and are called in a stream that discards
// work, so the memory need not exist. Its address is a multiple of every alignment that kernels check.
std::byte* planned_memory() {
  return reinterpret_cast<std::byte*>(uintptr_t{1} << 32);
}

// Instructions bound in one slot on one rank.
using BoundList = std::vector<bind::BoundKernel>;
struct Site {
  const program::CallList* list;
  int slot, rank;
};

// Offsets of roots in a program whose memory is not planned yet: consecutive. Empty if it is planned.
std::vector<int64_t> places_of(const Program& p) {
  const auto placed = [](const program::Buffer& b) { return b.same_as == program::kNoBuffer && b.offset >= 0; };
  std::vector<int64_t> places;
  if (std::ranges::any_of(p.buffers, placed)) return places;
  int64_t end = 0;
  for (const program::Buffer& b : p.buffers) {
    places.push_back(end);
    if (b.same_as == program::kNoBuffer) end += p.aligned(b.bytes());
  }
  return places;
}

BoundList bind_list(const Program& p, const Body& body, std::span<const Instruction> instructions, const Site& site,
                    const kernels::KernelSet& kernels, const std::vector<int64_t>& places) {
  BoundList bound;
  for (const Instruction& i : instructions) {
    if (i.kind != program::Kind::compute) {
      bound.emplace_back();
      continue;
    }
    bound.push_back(bind::bind_kernel(p, body, i, kernels, site.rank, [&](BufferId id) {
      if (!places.empty()) return planned_memory() + places[static_cast<size_t>(p.root(id))] + p.begin(id, site.rank);
      return bind::address_of(p, id, *site.list, site.slot, site.rank, planned_memory());
    }));
  }
  return bound;
}

// How often the instructions of the program read each buffer of the arena; outputs of the run count as one more.
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
  Groups(const Program& p, const kernels::KernelSet& kernels)
      : p_(p), kernels_(kernels), reads_(count_reads(p)), places_(places_of(p)) {}

  // [instruction]: number launched together from it, 0 if launched by an earlier one.
  std::vector<int> of(size_t body_id) {
    const Body& body = p_.bodies[body_id];
    std::vector<int> launches(body.instructions.size(), 1);
    find_sites(static_cast<int>(body_id));
    if (sites_.empty()) return launches;
    kernels_at_.clear();
    for (const Instruction& i : body.instructions) {
      const bool known = i.kind == program::Kind::compute && kernels_.has(i.kernel);
      kernels_at_.push_back(known ? &kernels_.find(i.kernel) : nullptr);
    }
    bound_.assign(body.instructions.size(), {});
    for (size_t i = 0; i < launches.size();) {
      const size_t count = group_from(body, i);
      launches[i] = static_cast<int>(count);
      for (size_t other = i + 1; other < i + count; ++other) launches[other] = 0;
      i += count;
    }
    return launches;
  }

 private:
  void find_sites(int body) {
    sites_.clear();
    const std::vector<int> ranks = program::ranks_of(p_);
    for (const program::CallList& list : p_.lists) {
      std::set<int> slots;
      for (const program::Call& call : list.calls)
        if (call.body == body) slots.insert(call.slot);
      for (const int slot : slots)
        for (const int rank : std::set<int>{ranks.front(), ranks.back()}) sites_.push_back({&list, slot, rank});
    }
  }

  // Whether a value produced by one of the first `before` instructions is read outside the group.
  bool read_elsewhere(const Body& body, size_t first, size_t before, size_t count) const {
    const std::span<const Instruction> group = std::span(body.instructions).subspan(first, count);
    for (const Instruction& i : group.first(before))
      for (const BufferId out : i.outs) {
        const BufferId value = p_.root(out);
        if (p_.buffer(value).region != program::Region::arena) continue;
        int64_t within = 0;
        for (const Instruction& reader : group)
          within +=
              std::count_if(reader.ins.begin(), reader.ins.end(), [&](BufferId b) { return p_.root(b) == value; });
        if (within != reads_[static_cast<size_t>(value)]) return true;
      }
    return false;
  }

  const kernels::Kernel* kernel_at(size_t i) const { return i < kernels_at_.size() ? kernels_at_[i] : nullptr; }

  // Binds those of instructions [first, end) of the body that are not yet bound, at the first site.
  void bind(const Body& body, size_t first, size_t end) {
    for (size_t i = first; i < end; ++i)
      if (bound_[i].kernel == nullptr)
        bound_[i] =
            std::move(bind_list(p_, body, std::span(&body.instructions[i], 1), sites_.front(), kernels_, places_)[0]);
  }

  // Whether instruction i may join the group [first, i) whose own kernel begins at `own`.
  static bool independent(const BoundList& b, size_t first, size_t own, size_t i) {
    for (size_t other = first; other < i; ++other) {
      const bool reads = other >= own && bind::touch(b[i].ins, b[other].outs);
      if (reads || bind::touch(b[i].outs, b[other].outs) || bind::touch(b[i].outs, b[other].ins)) return false;
    }
    return true;
  }

  // Whether the kernel performs instructions [first, first + count) of the list in one launch; they are `instructions`.
  bool performs(const kernels::Kernel& own, std::span<const Instruction> instructions, const BoundList& b,
                size_t first) const {
    std::vector<kernels::KernelCall> calls;
    for (size_t i = 0; i < instructions.size(); ++i) calls.push_back(call_of(instructions[i], b[first + i]));
    return own.together(calls);
  }

  // In the first slot, which rejects most groups, then in all others.
  bool accepts(const kernels::Kernel& own, const Body& body, size_t first, size_t before, size_t count) const {
    const std::span<const Instruction> group = std::span(body.instructions).subspan(first, count);
    if (!performs(own, group, bound_, first) || read_elsewhere(body, first, before, count)) return false;
    return std::all_of(sites_.begin() + 1, sites_.end(), [&](const Site& site) {
      const BoundList b = bind_list(p_, body, group, site, kernels_, places_);
      for (size_t i = 1; i < count; ++i)
        if (!independent(b, 0, before, i)) return false;
      return performs(own, group, b, 0);
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

  // The largest group from `first`: up to kMostBefore instructions that its kernel performs first, then its own.
  size_t group_from(const Body& body, size_t first) {
    for (size_t before = kernels::kMostBefore + 1; before-- > 0;) {
      const kernels::Kernel* own = kernel_at(first + before);
      if (own == nullptr || own->together == nullptr) continue;
      const auto joins = [&](size_t i) {
        const kernels::Kernel* const other = kernel_at(i);
        const Pattern* const pattern = other ? find_pattern(Rewrite::launch, other->kind) : nullptr;
        if (!pattern || !is_capable(*own, *pattern, other->kind)) return false;
        bind(body, first, i + 1);
        return independent(bound_, first, first + before, i);
      };
      bool fits = true;
      for (size_t i = first; i < first + before && fits; ++i) fits = joins(i);
      if (!fits) continue;
      size_t count = before;
      for (; count < before + kernels::kMostTogether && kernel_at(first + count) == own; ++count) {
        if (count == 0 && kernel_at(first + 1) != own) break;  // alone
        bind(body, first, first + count + 1);
        if (!independent(bound_, first, first + before, first + count)) break;
      }
      for (; count > std::max<size_t>(before, 1); --count)
        if (accepts(*own, body, first, before, count)) return count;
    }
    return 1;
  }

  const Program& p_;
  const kernels::KernelSet& kernels_;
  std::vector<int64_t> reads_;                      // by root
  std::vector<int64_t> places_;                     // [root], before memory is planned
  std::vector<Site> sites_;                         // of the body: each slot, on the first and last rank
  std::vector<const kernels::Kernel*> kernels_at_;  // of the body; null if unknown
  BoundList bound_;                                 // the body at the first site, as far as bind() was called
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
