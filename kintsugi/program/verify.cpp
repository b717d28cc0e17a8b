#include "kintsugi/program/verify.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/program/verify_messages.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::program {
namespace {

// A root, or a root in a micro-batch for values that each micro-batch has.
using Owner = int64_t;

// Tracks who last wrote which bytes of a region.
class Owners {
 public:
  void write(int64_t begin, int64_t end, Owner owner) {
    cut(begin);
    cut(end);
    ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(end));
    if (begin < end) ranges_[begin] = {end, owner};
  }

  bool owns(int64_t begin, int64_t end, Owner owner) const {
    auto i = ranges_.upper_bound(begin);
    if (i == ranges_.begin()) return begin == end;
    for (--i; begin < end; ++i) {
      if (i == ranges_.end() || i->first > begin || i->second.first <= begin || i->second.second != owner) return false;
      begin = i->second.first;
    }
    return true;
  }

 private:
  void cut(int64_t at) {
    auto i = ranges_.lower_bound(at);
    if (i == ranges_.begin()) return;
    --i;
    if (i->second.first <= at) return;
    ranges_[at] = {i->second.first, i->second.second};
    i->second.first = at;
  }

  std::map<int64_t, std::pair<int64_t, Owner>> ranges_;  // begin -> (end, owner)
};

// The bytes of a buffer in its root, on a rank.
struct RootRange {
  BufferId root = kNoBuffer;
  int64_t begin = 0, bytes = 0;

  bool operator==(const RootRange&) const = default;
};

std::vector<RootRange> root_ranges(const Program& p, int rank) {
  std::vector<RootRange> ranges;
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const auto id = static_cast<BufferId>(b);
    ranges.push_back({p.root(id), p.begin(id, rank), p.buffers[b].bytes()});
  }
  return ranges;
}

void check_offsets(const Program& p) {
  for (const Buffer& b : p.buffers) {
    if (b.same_as != kNoBuffer || b.segment >= 0 || (b.offset < 0 && b.region == Region::arena)) continue;
    const int64_t size = b.region == Region::state   ? p.state_bytes
                         : b.region == Region::arena ? p.arena_bytes
                                                     : p.file_bytes;
    const int64_t behind = std::max<int64_t>(0, b.copies - 1) * whole_pages(b.bytes());
    base::require(b.offset >= 0 && b.offset % p.alignment() == 0 && b.offset + behind + b.bytes() <= size, "verify",
                  "buffer \"{}\" at {}+{} of {} bytes is outside the {} bytes of its region", b.name, name_of(b.region),
                  b.offset, b.bytes(), size);
  }
}

// Checks that a launch executes consecutive compute instructions, each once.
void check_launches(const Program& p) {
  for (const Body& body : p.bodies) {
    size_t next = 0;  // the first instruction of the next launch
    for (size_t at = 0; at < body.instructions.size(); ++at) {
      const Instruction& i = body.instructions[at];
      const bool within = at < next;
      const bool fits = within ? i.launch == 0 && i.kind == Kind::compute
                               : i.launch == 1 || (i.launch > 1 && i.kind == Kind::compute);
      base::require(fits, "verify", "{}: instruction {} ({}) is in a launch of {}{}", body.name, at, name_of(i),
                    i.launch, within ? ", inside an earlier one" : "");
      if (!within) next = at + static_cast<size_t>(i.launch);
    }
    base::require(next <= body.instructions.size(), "verify", "{}: its last launch exceeds the body", body.name);
  }
}

// What one list leaves to the next.
struct Kept {
  Owners states, file;

  Owners& of(Region region) { return region == Region::state ? states : file; }
};

// Initially every state is present, except accumulators that live within a step.
Kept states_of(const Program& p) {
  Kept kept;
  for (const StateInfo& s : p.states) {
    const BufferId root = p.root(s.buffer);
    const Buffer& b = p.buffer(root);
    if (b.region == Region::arena) continue;
    kept.of(b.region).write(b.offset, b.offset + b.bytes(), root);
  }
  return kept;
}

class ListVerifier {
 public:
  ListVerifier(const Program& p, int rank, const std::vector<RootRange>& ranges, const CallList& list, Kept& kept)
      : p_(p), rank_(rank), ranges_(ranges), list_(list), last_(last_micro_batch(list)), kept_(kept) {}

  void run() {
    const std::vector<std::vector<BufferId>> inputs = first_inputs(p_, list_);
    // The first micro-batches, two more than can be in flight, cover all cases.
    int64_t shown = 2 + (list_.slots.size() > 1 ? static_cast<int64_t>(list_.slots.size()) : 0);
    for (const Buffer& b : p_.buffers) shown = std::max(shown, b.copies + 1);
    for (const VisitedCall& call : walk(p_, list_)) {
      if (call.call.micro_batch > shown && call.call.micro_batch != last_) continue;
      for (BufferId b : inputs[call.position]) write(b, call.call);
      for (size_t at = 0; at < call.body.instructions.size(); ++at) step(call, at);
    }
    base::require(begun_.empty(), "verify", "{}: only a part of a buffer is written", name_of(list_.step));
    for_each_instruction(p_, list_, [&](const VisitedCall& call, size_t, const Instruction& i) {
      for (BufferId b : i.outs)
        if (!p_.buffer(b).output.empty())
          base::require(is_there(b, call.call), "verify", "{}: output \"{}\" is overwritten", name_of(list_.step),
                        p_.buffer(b).output);
    });
  }

 private:
  void step(const VisitedCall& visited, size_t at) {
    const Call& call = visited.call;
    const Instruction& i = visited.body.instructions[at];
    // Format the message only on failure.
    const auto require = [&](bool fits, auto&& what) {
      if (fits) return;
      throw base::InternalError("verify", "{}: instruction {} of {}{}", name_of(list_.step), at, visited.body.name,
                                what());
    };
    const auto name = [&](BufferId b) { return fmt::format("#{} \"{}\"", b, p_.buffer(b).name); };
    for (BufferId b : i.ins)
      require(is_there(b, call),
              [&] { return fmt::format(" ({}) reads {}, which is not there", name_of(i), name(b)); });
    for (size_t j = 0; j < i.outs.size(); ++j)
      require(!((i.accumulate >> j) & 1u) || is_there(i.outs[j], call),
              [&] { return fmt::format(" ({}) adds to {}, which is not there", name_of(i), name(i.outs[j])); });
    check_parts(i, call, require);
    if (i.kind == Kind::wait) {
      for (BufferId b : i.outs)
        require(is_there(b, call),
                [&] { return fmt::format(": {} was overwritten while {} ran", name(b), name_of(i)); });
      return;
    }
    if (i.workspace != kNoBuffer) write(i.workspace, call);
    for (BufferId b : i.outs) write(b, call);
    // A write must not destroy another operand; in place, input and output are the same.
    for (BufferId b : i.ins)
      require(is_there(b, call), [&] { return fmt::format(" ({}) overwrites its input {}", name_of(i), name(b)); });
    for (size_t j = 0; j < i.outs.size(); ++j)
      require(is_there(i.outs[j], call),
              [&] { return fmt::format(" ({}): output {} overlaps another", name_of(i), j); });
    if (i.workspace != kNoBuffer)
      require(is_there(i.workspace, call),
              [&] { return fmt::format(" ({}): its workspace overlaps an output", name_of(i)); });
  }

  // Of a buffer that two instructions write, the first part may only be read by what begins a part itself, until the
  // second completes it.
  template <typename F>
  void check_parts(const Instruction& i, const Call& call, const F& require) {
    if (begun_.empty() && i.begins == 0 && i.completes == 0) return;
    const auto key = [&](BufferId b) { return owner(root(b), call.micro_batch); };
    const auto name = [&](BufferId b) { return fmt::format("#{} \"{}\"", b, p_.buffer(b).name); };
    const auto completes = [&](BufferId b) {
      for (size_t j = 0; j < i.outs.size(); ++j)
        if (((i.completes >> j) & 1u) && i.outs[j] == b) return true;
      return false;
    };
    for (BufferId b : i.ins)
      require(!begun_.contains(key(b)) || i.begins != 0 || completes(b),
              [&] { return fmt::format(" ({}) reads {}, of which only a part is there", name_of(i), name(b)); });
    for (size_t j = 0; j < i.outs.size(); ++j) {
      const bool begins = (i.begins >> j) & 1u, ends = (i.completes >> j) & 1u;
      require(begun_.contains(key(i.outs[j])) == ends && (!ends || is_there(i.outs[j], call)), [&] {
        return fmt::format(" ({}) {} {}, of which {} part is there", name_of(i), ends ? "completes" : "overwrites",
                           name(i.outs[j]), ends ? "no" : "only a");
      });
      if (begins) begun_.insert(key(i.outs[j]));
      if (ends) begun_.erase(key(i.outs[j]));
    }
  }

  const RootRange& range(BufferId b) const { return ranges_[static_cast<size_t>(b)]; }
  BufferId root(BufferId b) const { return range(b).root; }

  Owners& owners(BufferId b) {
    switch (p_.buffer(root(b)).region) {
      case Region::state:
      case Region::file:
        return kept_.of(p_.buffer(root(b)).region);
      case Region::arena:
        return arena_;
    }
    throw base::InternalError("verify", "no region {}", static_cast<int>(p_.buffer(root(b)).region));
  }

  // In a segment, or in a file with several slots, each micro-batch has its own value. Calls of the step continue with
  // the last one's in the segments.
  Owner owner(BufferId root, int64_t micro_batch) const {
    const Buffer& b = p_.buffer(root);
    if (micro_batch < 0 && b.segment >= 0) micro_batch = last_;
    if ((b.segment < 0 && b.copies == 0) || micro_batch < 0) return root;
    return root + (micro_batch + 1) * static_cast<int64_t>(p_.buffers.size());
  }

  int64_t begin(BufferId b, const Call& call) const {
    const BufferId r = root(b);
    if (p_.buffer(r).region == Region::file) return p_.in_file(b, call.micro_batch, rank_);
    return p_.offset(r, list_, call.slot) + range(b).begin;
  }

  void write(BufferId b, const Call& call) {
    const BufferId r = root(b);
    const Buffer& buffer = p_.buffer(r);
    base::require(buffer.offset >= 0, "verify", "buffer #{} \"{}\" has no place", r, buffer.name);
    const int64_t at = begin(b, call), end = at + range(b).bytes;
    base::require(range(b).begin + range(b).bytes <= range(r).bytes, "verify", "#{} \"{}\" is not within \"{}\"", b,
                  p_.buffer(b).name, buffer.name);
    base::require(buffer.segment < 0 || (at >= buffer.offset && end <= p_.arena_bytes), "verify",
                  "buffer #{} \"{}\" has no place in {}", r, buffer.name,
                  p_.bodies[static_cast<size_t>(call.body)].name);
    owners(b).write(at, end, owner(r, call.micro_batch));
  }

  // Whether a buffer still holds what was last written to it.
  bool is_there(BufferId b, const Call& call) {
    const BufferId r = root(b);
    const int64_t at = begin(b, call), end = at + range(b).bytes;
    return owners(b).owns(at, end, owner(r, call.micro_batch));
  }

  const Program& p_;
  int rank_;
  const std::vector<RootRange>& ranges_;  // [buffer]
  const CallList& list_;
  int64_t last_;  // last micro-batch
  Kept& kept_;
  Owners arena_;
  std::set<Owner> begun_;  // of which only a part is written
};

// The first rank that runs the program.
int first_rank(const Program& p) {
  for (int rank = 0; rank < p.mesh.ranks(); ++rank)
    if (p.mesh.stage_of(rank) == p.stage) return rank;
  return 0;
}

}  // namespace

void verify(const Program& p) {
  verify_messages(p, first_rank(p));
  check_offsets(p);
  check_launches(p);
  verify_order(p);
  // Offsets of parts depend on the rank; the first and last ranks cover all cases.
  const std::vector<RootRange> of_first = root_ranges(p, 0);
  for (int rank : {0, static_cast<int>(p.mesh.ranks()) - 1}) {
    const std::vector<RootRange> ranges = root_ranges(p, rank);
    if (rank > 0 && ranges == of_first) break;
    Kept kept = states_of(p);
    for (const CallList& list : p.lists) ListVerifier(p, rank, ranges, list, kept).run();
    if (p.mesh.ranks() == 1) break;
  }
}

}  // namespace kintsugi::program
