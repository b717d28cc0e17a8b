#include "kintsugi/program/verify_communication.h"

#include <algorithm>
#include <map>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/program/describe.h"

namespace kintsugi::program {
namespace {

constexpr int64_t kFile = INT64_MIN;

// Where a buffer may lie on some rank: parts count as the whole of what they are of.
struct Place {
  int64_t space = 0;  // 0, 1: a region; below: a segment, or the file; from 2 on: a root that has no offset
  int64_t begin = 0, end = 0;

  bool meets(const Place& other) const { return space == other.space && begin < other.end && other.begin < end; }
};

Place place_of(const Program& p, BufferId id) {
  const BufferId root = p.root(id);
  const Buffer& r = p.buffer(root);
  Place at;
  at.begin = p.is_part(id) ? 0 : p.begin(id, 0);
  at.end = p.is_part(id) ? r.bytes() : at.begin + p.buffer(id).bytes();
  if (r.offset < 0) {
    at.space = 2 + root;
  } else {
    at.space = r.region == Region::state ? 0 : r.region == Region::file ? kFile : r.segment < 0 ? 1 : -1 - r.segment;
    at.begin += r.offset;
    at.end += r.offset;
  }
  return at;
}

// Rank 0 and its neighbours along each factor. Where two buffers begin is a sum over the coordinates of a rank, so what
// holds of their distance on these holds on all.
std::vector<int> corners(const mesh::Mesh& mesh) {
  std::vector<int> ranks = {0};
  for (const mesh::FactorInfo& f : mesh.factors()) ranks.push_back(static_cast<int>(f.stride));
  return ranks;
}

class Checker {
 public:
  Checker(const Program& p, int rank) : p_(p), rank_(rank), corners_(corners(p.mesh)) {
    for (size_t b = 0; b < p.buffers.size(); ++b) places_.push_back(place_of(p, static_cast<BufferId>(b)));
    for (const Body& body : p.bodies)
      for (size_t at = 0; at < body.instructions.size(); ++at) {
        const Instruction& i = body.instructions[at];
        if (i.kind == Kind::collective && is_message(i)) messages_.try_emplace(i.event, Started{&i, at});
        if (i.kind == Kind::wait) waited_for_.insert(i.event);
      }
  }

  // Each message of a list is started once and waited for once, in this order.
  void check_messages(const CallList& list) {
    std::set<std::pair<int, int64_t>> started;
    for (const Call& call : list.calls) {
      const Body& body = p_.bodies[static_cast<size_t>(call.body)];
      for (size_t at = 0; at < body.instructions.size(); ++at) {
        const Instruction& i = body.instructions[at];
        if (!is_message(i)) continue;
        const std::pair key(i.event, call.micro_batch);
        const bool fits = i.kind == Kind::collective ? started.insert(key).second : started.erase(key) == 1;
        base::require(fits, "verify", "{}: rank {} at instruction {} of {} ({}) {}", name_of(list.step), rank_, at,
                      describe(p_, call), describe(p_, i, rank_),
                      i.kind == Kind::collective ? "is on its way already" : "waits for what was not started");
      }
    }
    if (started.empty()) return;
    const auto& [event, micro_batch] = *started.begin();
    throw base::InternalError("verify", "{}: rank {}, micro-batch {}: nothing waits for {}", name_of(list.step), rank_,
                              micro_batch, describe(p_, *messages_.at(event).instruction, rank_));
  }

  void check(const CallList& list, const Body& body) {
    started_.clear();
    pending_.clear();
    for (const Instruction& i : body.instructions) {  // what an earlier call has started
      const auto message = messages_.find(i.event);
      if (i.kind != Kind::wait || message == messages_.end() || is_within(body, message->second)) continue;
      started_[i.event] = message->second;
      pending_.push_back(message->second);
    }
    for (size_t at = 0; at < body.instructions.size(); ++at) {
      const Instruction& i = body.instructions[at];
      where_ = fmt::format("{}: rank {} at instruction {} of {} ({})", name_of(list.step), rank_, at, body.name,
                           i.kind == Kind::compute ? i.kernel : describe(p_, i, rank_));
      if (i.kind == Kind::wait) {
        wait(i, at);
      } else {
        for (const Started& start : pending_) apart(*start.instruction, start.at, i);
        if (i.kind == Kind::collective || i.kind == Kind::copy) start(i, at);
      }
    }
    std::erase_if(pending_, [&](const Started& s) {
      return is_message(*s.instruction) && waited_for_.contains(s.instruction->event);
    });
    if (pending_.empty()) return;
    throw base::InternalError("verify", "{}: rank {} at instruction {} of {} ({}) never waits for it", name_of(list.step), rank_,
                              pending_[0].at, body.name, describe(p_, *pending_[0].instruction, rank_));
  }

 private:
  struct Started {
    const Instruction* instruction = nullptr;
    size_t at = 0;
    int64_t waited = -1;  // by that instruction
  };

  static bool is_within(const Body& body, const Started& s) {
    return !body.instructions.empty() && s.instruction >= body.instructions.data() &&
           s.instruction < body.instructions.data() + body.instructions.size();
  }

  void start(const Instruction& i, size_t at) {
    i.kind == Kind::copy ? is_whole_copy(i) : is_well_made(i);
    const auto found = started_.find(i.event);
    base::require(i.event >= 0, "verify", "{}: it has no event", where_);
    base::require(found == started_.end(), "verify", "{}: it has the event {} of instruction {}", where_, i.event,
                  found == started_.end() ? 0 : found->second.at);
    started_[i.event] = {&i, at};
    pending_.push_back({&i, at});
  }

  void wait(const Instruction& i, size_t at) {
    const auto found = started_.find(i.event);
    base::require(found != started_.end(), "verify", "{} waits for what was not started", where_);
    Started& s = found->second;
    const Instruction& of = *s.instruction;
    base::require(
        name_of(of) == name_of(i) && of.ins == i.ins && of.outs == i.outs && of.group == i.group && of.peer == i.peer,
        "verify", "{} waits for instruction {}, which is {}", where_, s.at, describe(p_, of, rank_));
    base::require(s.waited < 0, "verify", "{} waits for instruction {}, as instruction {} did", where_, s.at, s.waited);
    s.waited = static_cast<int64_t>(at);
    std::erase_if(pending_, [&](const Started& p) { return p.instruction == &of; });
  }

  // An instruction and a collective or copy that may still be on its way.
  void apart(const Instruction& moving, size_t start, const Instruction& i) {
    const auto refuse = [&](const char* does, BufferId b, const char* still) {
      throw base::InternalError("verify", "{} {} #{} \"{}\", which instruction {} ({}) still {}", where_, does, b,
                                p_.buffer(b).name, start, describe(p_, moving, rank_), still);
    };
    for (BufferId b : i.ins)
      if (meets(b, moving.outs)) refuse("reads", b, "makes");
    const auto writes = [&](BufferId b) {
      if (meets(b, moving.outs)) refuse("writes", b, "makes");
      if (meets(b, moving.ins)) refuse("writes", b, "reads");
    };
    for (BufferId b : i.outs) writes(b);
    if (i.workspace != kNoBuffer) writes(i.workspace);
  }

  void is_whole_copy(const Instruction& i) {
    base::require(i.ins.size() == 1 && i.outs.size() == 1, "verify", "{}: it has {} inputs and {} outputs", where_,
                  i.ins.size(), i.outs.size());
    const auto region = [&](BufferId b) { return p_.buffer(p_.root(b)).region; };
    const Region from = region(i.ins[0]), to = region(i.outs[0]);
    const bool fetches = i.copy == Copy::fetch;
    base::require(from == (fetches ? Region::file : Region::arena) && to == (fetches ? Region::arena : Region::file),
                  "verify", "{}: it goes from {} to {}", where_, name_of(from), name_of(to));
    const Buffer &in = p_.buffer(i.ins[0]), &out = p_.buffer(i.outs[0]);
    base::require(in.bytes() == out.bytes(), "verify", "{}: {} bytes become {}", where_, in.bytes(), out.bytes());
  }

  void is_well_made(const Instruction& i) {
    base::require(!i.group.empty(), "verify", "{}: it has no group", where_);
    for (size_t f = 0; f < i.group.size(); ++f)
      base::require(i.group[f] >= 0 && i.group[f] < static_cast<int>(p_.mesh.factors().size()) &&
                        std::count(i.group.begin(), i.group.end(), i.group[f]) == 1,
                    "verify", "{}: factor {} of its group is not in the mesh, or is there twice", where_, f);
    const bool sends = i.collective != Collective::receive, receives = i.collective != Collective::send;
    base::require(i.ins.size() == (sends ? 1u : 0u) && i.outs.size() == (receives ? 1u : 0u), "verify",
                  "{}: it has {} inputs and {} outputs", where_, i.ins.size(), i.outs.size());
    const int64_t n = p_.mesh.count(i.group);
    base::require(is_message(i) ? i.peer >= 0 && i.peer < n : i.peer == -1, "verify", "{}: it has peer {} of {} places",
                  where_, i.peer, n);
    if (sends && receives) has_sizes(i, n);
  }

  void has_sizes(const Instruction& i, int64_t n) {
    const Buffer &in = p_.buffer(i.ins[0]), &out = p_.buffer(i.outs[0]);
    base::require(in.type.dtype == out.type.dtype, "verify", "{}: {} becomes {}", where_, name_of(in.type.dtype),
                  name_of(out.type.dtype));
    const int64_t from = in.type.shape.elements(), to = out.type.shape.elements();
    const int64_t asked = i.collective == Collective::all_gather ? from * n : i.collective == Collective::reduce_scatter ? from / n : from;
    const bool cut = i.collective == Collective::reduce_scatter || i.collective == Collective::all_to_all;
    base::require(!cut || from % n == 0, "verify", "{}: {} elements are not {} equal parts", where_, from, n);
    base::require(to == asked, "verify", "{}: {} elements become {} instead of {}", where_, from, to, asked);
    if (!places_[static_cast<size_t>(i.ins[0])].meets(places_[static_cast<size_t>(i.outs[0])])) return;
    // In place: the whole, or the own part of the larger.
    base::require(reduces(i) || i.collective == Collective::all_gather, "verify", "{}: what it makes lies over what it reads",
                  where_);
    for (int rank : corners_) {
      const int64_t small = std::min(in.bytes(), out.bytes());
      const int64_t part = i.collective == Collective::all_reduce ? 0 : p_.mesh.position(rank, i.group) * small;
      const int64_t between = i.collective == Collective::all_gather ? begin(i.ins[0], rank) - begin(i.outs[0], rank)
                                                       : begin(i.outs[0], rank) - begin(i.ins[0], rank);
      base::require(between == part, "verify", "{}: on rank {}, what it makes lies over what it reads", where_, rank);
    }
  }

  int64_t begin(BufferId b, int rank) const { return p_.buffer(p_.root(b)).offset + p_.begin(b, rank); }

  bool meets(BufferId a, const std::vector<BufferId>& list) const {
    return std::any_of(list.begin(), list.end(), [&](BufferId b) {
      return places_[static_cast<size_t>(a)].meets(places_[static_cast<size_t>(b)]);
    });
  }

  const Program& p_;
  int rank_;
  std::vector<int> corners_;
  std::vector<Place> places_;  // by buffer
  std::map<int, Started> started_;
  std::vector<Started> pending_;
  std::map<int, Started> messages_;  // of all bodies, by event
  std::set<int> waited_for_;
  std::string where_;
};

}  // namespace

void verify_communication(const Program& p, int rank) {
  Checker checker(p, rank);
  std::set<int> done;
  for (const CallList& list : p.lists)
    for (const Call& call : list.calls)
      if (done.insert(call.body).second) checker.check(list, p.bodies[static_cast<size_t>(call.body)]);
  for (const CallList& list : p.lists) checker.check_messages(list);
}

}  // namespace kintsugi::program
