#include "kintsugi/program/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "kintsugi/base/error.h"

namespace kintsugi::program {
namespace {

// Who wrote which bytes of a region last.
using Owner = int64_t;

class Bytes {
 public:
  void write(int64_t begin, int64_t end, Owner owner) {
    cut(begin);
    cut(end);
    owners_.erase(owners_.lower_bound(begin), owners_.lower_bound(end));
    if (begin < end) owners_[begin] = {end, owner};
  }

  bool holds(int64_t begin, int64_t end, Owner owner) const {
    auto i = owners_.upper_bound(begin);
    if (i == owners_.begin()) return begin == end;
    for (--i; begin < end; ++i) {
      if (i == owners_.end() || i->first > begin || i->second.first <= begin || i->second.second != owner) return false;
      begin = i->second.first;
    }
    return true;
  }

 private:
  void cut(int64_t at) {
    auto i = owners_.lower_bound(at);
    if (i == owners_.begin()) return;
    --i;
    if (i->second.first <= at) return;
    owners_[at] = {i->second.first, i->second.second};
    i->second.first = at;
  }

  std::map<int64_t, std::pair<int64_t, Owner>> owners_;  // begin -> (end, owner)
};

// Where a buffer lies in its root, on a rank.
struct Place {
  BufferId root = kNoBuffer;
  int64_t begin = 0, bytes = 0;

  bool operator==(const Place&) const = default;
};

std::vector<Place> places_of(const Program& p, int rank) {
  std::vector<Place> places;
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const auto id = static_cast<BufferId>(b);
    places.push_back({p.root(id), p.begin(id, rank), p.buffers[b].bytes()});
  }
  return places;
}

class Verifier {
 public:
  Verifier(const Program& p, int rank, std::vector<Place> places) : p_(p), rank_(rank), places_(std::move(places)) {
    for (const Buffer& b : p.buffers) {
      if (b.same_as != kNoBuffer || b.segment >= 0 || (b.offset < 0 && b.region == Region::arena)) continue;
      const int64_t size = b.region == Region::state   ? p.state_bytes
                           : b.region == Region::arena ? p.arena_bytes
                                                       : p.file_bytes;
      const int64_t behind = std::max<int64_t>(0, b.copies - 1) * whole_pages(b.bytes());
      base::require(b.offset >= 0 && b.offset % kAlignment == 0 && b.offset + behind + b.bytes() <= size, "verify",
                    "buffer \"{}\" at {}+{} of {} bytes is outside the {} bytes of its region", b.name,
                    name_of(b.region), b.offset, b.bytes(), size);
    }
    for (const StateInfo& s : p.states) write(region(states_, s.buffer), root(s.buffer), {});
  }

  void run(const CallList& list) {
    Bytes arena;
    list_ = &list;
    filled_.clear();
    in_flight_.clear();
    int64_t last = 0;
    for (const Call& call : list.calls) last = std::max(last, call.micro_batch);
    // What the first ones, as many as are under way at one time and two more, show, all show.
    int64_t shown = 2 + (list.slots.size() > 1 ? static_cast<int64_t>(list.slots.size()) : 0);
    for (const Buffer& b : p_.buffers) shown = std::max(shown, b.copies + 1);
    for (const Call& call : list.calls) {
      if (call.micro_batch > shown && call.micro_batch != last) continue;
      const Body& body = p_.bodies[static_cast<size_t>(call.body)];
      fill_inputs(arena, call);
      for (size_t i = 0; i < body.instructions.size(); ++i) step(arena, call, body, i);
    }
    for (const Call& call : list.calls)
      for (const Instruction& i : p_.bodies[static_cast<size_t>(call.body)].instructions)
        for (BufferId b : i.outs)
          if (!p_.buffer(b).output.empty())
            base::require(holds(arena, b, call), "verify", "{}: output \"{}\" is overwritten", name_of(list.step),
                          p_.buffer(b).output);
  }

 private:
  void step(Bytes& arena, const Call& call, const Body& body, size_t at) {
    const CallList& list = *list_;
    const Instruction& i = body.instructions[at];
    for (BufferId b : i.ins)
      base::require(holds(arena, b, call), "verify",
                    "{}: instruction {} of {} ({}) reads #{} \"{}\", which is not there", name_of(list.step), at, body.name,
                    name_of(i), b, p_.buffer(b).name);
    for (BufferId b : i.ins)
      base::require(in_flight_.empty() || !in_flight_.contains(owner(root(b), call)), "verify",
                    "{}: instruction {} of {} ({}) reads #{} \"{}\", which is still on its way", name_of(list.step), at,
                    body.name, name_of(i), b, p_.buffer(b).name);
    for (size_t j = 0; j < i.outs.size(); ++j)
      base::require(!((i.accumulate >> j) & 1u) || holds(arena, i.outs[j], call), "verify",
                    "{}: instruction {} of {} ({}) adds to #{} \"{}\", which is not there", name_of(list.step), at, body.name,
                    name_of(i), i.outs[j], p_.buffer(i.outs[j]).name);
    if (i.kind == Kind::wait) {
      for (BufferId b : i.outs)
        base::require(holds(arena, b, call), "verify",
                      "{}: instruction {} of {}: #{} \"{}\" was overwritten while {} ran", name_of(list.step), at, body.name, b,
                      p_.buffer(b).name, name_of(i));
      for (BufferId b : i.outs) in_flight_.erase(owner(root(b), call));
      return;
    }
    if (starts(i, Collective::receive)) in_flight_.insert(owner(root(i.outs[0]), call));
    if (i.workspace != kNoBuffer) write(arena, i.workspace, call);
    for (BufferId b : i.outs) write(region(arena, b), b, call);
    // What was written must not have destroyed an operand beside it. In place, input and output are one.
    for (BufferId b : i.ins)
      base::require(holds(arena, b, call), "verify", "{}: instruction {} of {} ({}) overwrites its input #{} \"{}\"",
                    name_of(list.step), at, body.name, name_of(i), b, p_.buffer(b).name);
    for (size_t j = 0; j < i.outs.size(); ++j)
      base::require(holds(arena, i.outs[j], call), "verify",
                    "{}: instruction {} of {} ({}): output {} overlaps another", name_of(list.step), at, body.name, name_of(i), j);
    if (i.workspace != kNoBuffer)
      base::require(holds(arena, i.workspace, call), "verify",
                    "{}: instruction {} of {} ({}): its workspace overlaps an output", name_of(list.step), at, body.name,
                    name_of(i));
  }

  const Place& place(BufferId b) const { return places_[static_cast<size_t>(b)]; }
  BufferId root(BufferId b) const { return place(b).root; }

  // An input is filled before the first call of its micro-batch that reads it.
  void fill_inputs(Bytes& arena, const Call& call) {
    for (const Instruction& i : p_.bodies[static_cast<size_t>(call.body)].instructions)
      for (BufferId b : i.ins)
        if (!p_.buffer(root(b)).input.empty() && filled_.insert({root(b), call.micro_batch}).second)
          write(arena, root(b), call);
  }

  Bytes& region(Bytes& arena, BufferId b) {
    const Region r = p_.buffer(root(b)).region;
    return r == Region::state ? states_ : r == Region::arena ? arena : file_;
  }

  // Of what lies in a segment, or in several places of the file, each micro-batch has its own.
  Owner owner(BufferId root, const Call& call) const {
    if ((p_.buffer(root).segment < 0 && p_.buffer(root).copies == 0) || call.micro_batch < 0) return root;
    return root + (call.micro_batch + 1) * static_cast<int64_t>(p_.buffers.size());
  }

  int64_t begin(BufferId b, const Call& call) const {
    const BufferId r = root(b);
    if (p_.buffer(r).region == Region::file) return p_.in_file(b, call.micro_batch, rank_);
    return (list_ ? p_.offset(r, *list_, call.slot) : p_.buffer(r).offset) + place(b).begin;
  }

  void write(Bytes& bytes, BufferId b, const Call& call) {
    const BufferId r = root(b);
    const Buffer& buffer = p_.buffer(r);
    base::require(buffer.offset >= 0, "verify", "buffer #{} \"{}\" has no place", r, buffer.name);
    const int64_t at = begin(b, call), end = at + place(b).bytes;
    base::require(place(b).begin + place(b).bytes <= place(r).bytes, "verify", "#{} \"{}\" is not within \"{}\"", b,
                  p_.buffer(b).name, buffer.name);
    base::require(buffer.segment < 0 || (at >= buffer.offset && end <= p_.arena_bytes), "verify",
                  "buffer #{} \"{}\" has no place in {}", r, buffer.name,
                  p_.bodies[static_cast<size_t>(call.body)].name);
    bytes.write(at, end, owner(r, call));
  }

  bool holds(Bytes& arena, BufferId b, const Call& call) {
    const BufferId r = root(b);
    const int64_t at = begin(b, call), end = at + place(b).bytes;
    if (region(arena, r).holds(at, end, owner(r, call))) return true;
    // What a micro-batch leaves for the step.
    if (call.micro_batch >= 0 || p_.buffer(r).segment < 0) return false;
    int64_t last = 0;
    for (const Call& c : list_->calls) last = std::max(last, c.micro_batch);
    return region(arena, r).holds(at, end, owner(r, {call.body, last, call.slot}));
  }

  const Program& p_;
  int rank_;
  std::vector<Place> places_;  // by buffer
  Bytes states_, file_;
  const CallList* list_ = nullptr;
  std::set<std::pair<BufferId, int64_t>> filled_;  // by micro-batch
  std::set<Owner> in_flight_;                      // received, and not waited for
};

}  // namespace

void verify(const Program& p) {
  // Where parts lie depends on the rank; the first and the last have all that can go wrong.
  const std::vector<Place> of_first = places_of(p, 0);
  for (int rank : {0, static_cast<int>(p.mesh.ranks()) - 1}) {
    std::vector<Place> places = places_of(p, rank);
    if (rank > 0 && places == of_first) break;
    Verifier verifier(p, rank, std::move(places));
    for (const CallList& list : p.lists) verifier.run(list);
    if (p.mesh.ranks() == 1) break;
  }
}

}  // namespace kintsugi::program
