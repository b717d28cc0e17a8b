// Offloads optimizer states to the file; see offload.h.
#include <algorithm>
#include <map>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/order/copies.h"
#include "kintsugi/lower/order/offload.h"
#include "kintsugi/lower/order/offload_parts.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::Kind;
using program::Program;
using program::Region;

namespace {

constexpr int64_t kPiece = int64_t{1} << 20;  // elements
constexpr int64_t kPieces = 128;              // approximate number of pieces per rank
constexpr int64_t kStep = 4096;               // pieces are multiples of this, the grain of kernels

class OptimizerInFile {
 public:
  OptimizerInFile(Program& p, const graph::OpTable& operations, int& events)
      : p_(p), operations_(operations), copies_(p, events) {
    for (const program::StateInfo& s : p.states)
      if (s.kind == program::StateKind::optimizer && p.buffer(s.buffer).region == Region::state)
        states_.insert(s.buffer);
    int64_t elements = 0;
    for (BufferId b : states_) elements += p.buffer(b).type.shape.elements();
    piece_ = std::max(kPiece, elements / kPieces);
    piece_ = (piece_ + kStep - 1) / kStep * kStep;
  }

  void run() {
    for (Body& body : p_.bodies)
      base::require(body.does(program::Work::update) || !touches(body), "offload", "{} uses optimizer state",
                    body.name);
    for (Body& body : p_.bodies) {
      if (!touches(body)) continue;
      count_uses(body);
      cut(body);
      find_units(body);
      place(body);
      copies_.put_into(body);
    }
    for (program::StateInfo& s : p_.states)
      if (const auto f = files_.find(s.buffer); f != files_.end()) s.buffer = f->second;
  }

 private:
  // What is staged at one time, from the first to the last instruction that touches it.
  struct Unit {
    size_t first = 0, last = 0;
    std::vector<std::pair<BufferId, BufferId>> moved = {};  // in the file, in the arena
    int64_t bytes = 0;
    std::vector<int> fetches = {}, stores = {};
  };

  bool touches(const Body& body) const {
    return std::any_of(body.instructions.begin(), body.instructions.end(),
                       [&](const Instruction& i) { return !states_of(i).empty(); });
  }

  std::set<BufferId> states_of(const Instruction& i) const {
    std::set<BufferId> found;
    for (const auto* list : {&i.ins, &i.outs})
      for (BufferId b : *list)
        if (states_.contains(p_.root(b))) found.insert(p_.root(b));
    return found;
  }

  void count_uses(const Body& body) {
    uses_.clear();
    for (const Instruction& i : body.instructions)
      for (BufferId b : states_of(i)) ++uses_[b];
  }

  // The number of elements if the instruction can work in pieces, else 0.
  int64_t in_pieces(const Instruction& i) const {
    const std::set<BufferId> states = states_of(i);
    if (i.kind != Kind::compute || states.empty() || !operations_.find(i.kernel).flat) return 0;
    const int64_t elements = p_.buffer(*states.begin()).type.shape.elements();
    for (BufferId b : states)
      if (uses_.at(b) != 1) return 0;
    for (const auto* list : {&i.ins, &i.outs})
      for (BufferId b : *list) {
        const bool part = states.contains(p_.root(b)) && b != p_.root(b);
        const int64_t n = p_.buffer(b).type.shape.elements();
        if (part || (n != elements && n != 1)) return 0;
      }
    return elements;
  }

  void cut(Body& body) {
    std::vector<Instruction> list;
    for (Instruction& i : body.instructions) {
      const int64_t elements = in_pieces(i);
      if (elements <= piece_) {
        list.push_back(std::move(i));
        continue;
      }
      for (BufferId b : states_of(i)) {
        p_.buffer(b).region = Region::file;
        files_[b] = b;
      }
      for (int64_t at = 0; at < elements; at += piece_)
        list.push_back(piece_of(i, elements, at, std::min(piece_, elements - at)));
    }
    body.instructions = std::move(list);
  }

  Instruction piece_of(const Instruction& whole, int64_t elements, int64_t at, int64_t count) {
    Instruction i = whole;
    const double share = static_cast<double>(count) / static_cast<double>(elements);
    i.cost.flops *= share;
    i.cost.memory_bytes *= share;
    std::map<BufferId, BufferId> now;
    for (auto* list : {&i.ins, &i.outs})
      for (BufferId& b : *list) {
        if (p_.buffer(b).type.shape.elements() != elements) continue;
        const auto [known, fresh] = now.try_emplace(b, program::kNoBuffer);
        if (fresh) known->second = staged_or_part(b, at, count);
        b = known->second;
      }
    return i;
  }

  BufferId staged_or_part(BufferId b, int64_t at, int64_t count) {
    const BufferId part = add_part(p_, b, at, count);
    if (!files_.contains(b)) return part;
    p_.buffers.push_back({.name = p_.buffer(b).name + ".staged", .type = p_.buffer(part).type});
    const auto staged = static_cast<BufferId>(p_.buffers.size()) - 1;
    pieces_[staged] = part;
    return staged;
  }

  // Pieces with the same first and last instruction form a unit.
  void find_units(const Body& body) {
    std::map<BufferId, Unit> found;  // [buffer in the arena]
    for (size_t at = 0; at < body.instructions.size(); ++at)
      for (const auto* list : {&body.instructions[at].ins, &body.instructions[at].outs})
        for (BufferId id : *list) {
          const BufferId b = p_.root(id);
          if (!pieces_.contains(b) && (!states_.contains(b) || p_.buffer(b).region == Region::file)) continue;
          found.try_emplace(b, Unit{.first = at}).first->second.last = at;
        }
    std::map<std::pair<size_t, size_t>, Unit> units;
    for (auto& [b, unit] : found) {
      Unit& u = units.try_emplace({unit.first, unit.last}, unit).first->second;
      u.moved.push_back({file_of(b), b});
      u.bytes += p_.aligned(p_.buffer(b).bytes());
    }
    units_.clear();
    for (auto& [range, unit] : units) units_.push_back(std::move(unit));
  }

  BufferId file_of(BufferId staged) {
    if (const auto piece = pieces_.find(staged); piece != pieces_.end()) return piece->second;
    const BufferId file = add_like(p_, staged, Region::file, "");
    p_.buffer(staged).region = Region::arena;
    p_.buffer(staged).name += ".staged";
    return files_[staged] = file;
  }

  // While unit k is computed, k + 1 is being fetched, and more as far as they fit into three of the largest. If they do
  // not fit, first waits for stores of those before k - 1.
  void place(const Body& body) {
    int64_t staging = 0;
    for (const Unit& u : units_) staging = std::max(staging, 3 * u.bytes);
    const std::vector<Instruction>& list = body.instructions;
    size_t fetched = 0, stored = 0;  // first one that is not
    int64_t staged = 0;
    const auto fetch = [&](size_t at) {
      Unit& u = units_[fetched++];
      for (const auto& [file, arena] : u.moved) u.fetches.push_back(copies_.fetch(at, file, arena, list[u.first]));
      staged += u.bytes;
    };
    const auto wait_for_stores = [&](size_t at) {
      for (int copy : units_[stored].stores) copies_.wait(at, copy);
      staged -= units_[stored++].bytes;
    };
    fetch(0);
    for (size_t k = 0; k < units_.size(); ++k) {
      Unit& u = units_[k];
      while (fetched < units_.size()) {
        while (staged + units_[fetched].bytes > staging && stored + 1 < k && units_[stored].last < u.first)
          wait_for_stores(u.first);
        if (staged + units_[fetched].bytes > staging && fetched > k + 1) break;
        fetch(u.first);
      }
      for (int copy : u.fetches) copies_.wait(u.first, copy);
      for (const auto& [file, arena] : u.moved)
        if (is_written(list, u, arena)) u.stores.push_back(copies_.store(u.last + 1, arena, file, list[u.last]));
    }
    while (stored < units_.size()) wait_for_stores(list.size());
  }

  bool is_written(const std::vector<Instruction>& list, const Unit& u, BufferId b) const {
    return std::any_of(list.begin() + static_cast<std::ptrdiff_t>(u.first),
                       list.begin() + static_cast<std::ptrdiff_t>(u.last) + 1, [&](const Instruction& i) {
                         return std::any_of(i.outs.begin(), i.outs.end(), [&](BufferId o) { return p_.root(o) == b; });
                       });
  }

  Program& p_;
  const graph::OpTable& operations_;
  Copies copies_;
  int64_t piece_ = 0;
  std::set<BufferId> states_;            // of the optimizer
  std::map<BufferId, int> uses_;         // [state]: uses in a body
  std::map<BufferId, BufferId> files_;   // [state]: its buffer in the file
  std::map<BufferId, BufferId> pieces_;  // [staged piece]: its place in the file
  std::vector<Unit> units_;
};

}  // namespace

void offload_optimizer(Program& p, const graph::OpTable& operations, int& events) {
  OptimizerInFile(p, operations, events).run();
}

}  // namespace kintsugi::lower
