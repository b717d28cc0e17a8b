#include "kintsugi/program/arena_use.h"

#include <algorithm>
#include <map>

namespace kintsugi::program {
namespace {

// Merges adjacent ranges.
void merge(std::vector<InstructionRange>& list, InstructionRange range) {
  std::erase_if(list, [&](const InstructionRange& other) {
    if (other.begin > range.end + 1 || range.begin > other.end + 1) return false;
    range = {std::min(range.begin, other.begin), std::max(range.end, other.end)};
    return true;
  });
  const auto behind =
      std::find_if(list.begin(), list.end(), [&](const InstructionRange& other) { return other.begin > range.begin; });
  list.insert(behind, range);
}

class Reader {
 public:
  Reader(const Program& p, const Body& body) : p_(p), length_(static_cast<int>(body.instructions.size())) {
    for (int at = 0; at < length_; ++at) {
      const Instruction& i = body.instructions[static_cast<size_t>(at)];
      if (i.kind == Kind::wait) waits_[i.event] = at;
      if (i.kind == Kind::collective) starts_[i.event] = at;
    }
    for (int at = 0; at < length_; ++at) read(body.instructions[static_cast<size_t>(at)], at);
  }

  std::vector<ArenaUse> take() { return std::move(uses_); }

 private:
  void read(const Instruction& i, int at) {
    for (BufferId b : i.ins)
      if (ArenaUse* use = touch(b, at)) {
        (i.kind == Kind::compute ? use->read : use->sent) = true;
        move(*use, i, at);
      }
    for (BufferId b : i.outs)
      if (ArenaUse* use = touch(b, at)) {
        (i.kind == Kind::compute ? use->computed : use->received) = true;
        move(*use, i, at);
      }
    if (i.workspace == kNoBuffer) return;
    if (ArenaUse* use = touch(i.workspace, at)) use->workspace = true;
  }

  // Null for buffers outside the arena.
  ArenaUse* touch(BufferId id, int at) {
    const BufferId root = p_.root(id);
    if (p_.buffer(root).region != Region::arena) return nullptr;
    const auto [known, first] = position_.try_emplace(root, uses_.size());
    if (first) uses_.push_back({.root = root, .touched = {at, at}});
    ArenaUse& use = uses_[known->second];
    use.touched.end = at;
    return &use;
  }

  // Records an operand of an instruction that may communicate.
  void move(ArenaUse& use, const Instruction& i, int at) const {
    switch (i.kind) {
      case Kind::compute:
        return;
      case Kind::copy:
        return merge(use.in_transit, {at, at});
      case Kind::collective:
        if (i.event < 0) return merge(use.in_transit, {at, at});
        if (const auto wait = waits_.find(i.event); wait != waits_.end())
          return merge(use.in_transit, {at, wait->second});
        merge(use.in_transit, {at, length_ - 1});
        ++use.num_started;
        return;
      case Kind::wait:  // a wait for a copy counts as one for a message of an earlier call
        if (starts_.contains(i.event)) return;
        merge(use.in_transit, {0, at});
        use.awaits = true;
        --use.num_started;
        return;
    }
  }

  const Program& p_;
  int length_;
  std::map<int, int> starts_, waits_;  // [event]: the collective, the wait
  std::map<BufferId, size_t> position_;
  std::vector<ArenaUse> uses_;
};

}  // namespace

std::vector<ArenaUse> arena_uses(const Program& p, const Body& body) {
  return Reader(p, body).take();
}

}  // namespace kintsugi::program
