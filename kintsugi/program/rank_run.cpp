#include "kintsugi/program/rank_run.h"

#include <algorithm>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/program/describe.h"

namespace kintsugi::program {

using mesh::Factor;

namespace {

// An element of Mesh::group, without the others.
int rank_at(const mesh::Mesh& mesh, int rank, std::span<const Factor> factors, int64_t place) {
  int64_t at = rank;
  for (size_t i = factors.size(); i-- > 0;) {
    const auto& factor = mesh.factor(factors[i]);
    at += (place % factor.size - mesh.coordinate(rank, factors[i])) * factor.stride;
    place /= factor.size;
  }
  return static_cast<int>(at);
}

}  // namespace

RankRun::RankRun(const RankPrograms& programs, std::vector<Factor> factors)
    : programs_(programs), factors_(std::move(factors)), position_(programs.of_rank.size(), -1) {
  for (const Program* p : programs_.distinct) {
    bodies_.emplace_back();
    for (size_t b = 0; b < p->bodies.size(); ++b) bodies_.back().push_back(operations_of(*p, static_cast<int>(b)));
  }
  for (int rank : programs_.distinct[0]->mesh.group(0, factors_)) {
    position_[static_cast<size_t>(rank)] = static_cast<int>(ranks_.size());
    ranks_.push_back({.rank = rank, .program = static_cast<size_t>(programs_.of_rank[static_cast<size_t>(rank)])});
  }
}

int RankRun::group_of(const std::vector<Factor>& factors) {
  for (size_t g = 0; g < groups_.size(); ++g)
    if (groups_[g].all == factors) return static_cast<int>(g);
  groups_.push_back({factors, {}});
  for (Factor f : factors)
    if (std::count(factors_.begin(), factors_.end(), f) > 0) groups_.back().kept.push_back(f);
  return static_cast<int>(groups_.size()) - 1;
}

int RankRun::signature_of(const Program& p, const Instruction& i) {
  std::string text =
      is_message(i) ? std::string("message") : fmt::format("{} {}", name_of(i.collective), name_of(i.reduction));
  text += fmt::format("|{}", group_of(i.group));
  for (const auto* operands : {&i.ins, &i.outs})
    for (BufferId b : *operands)
      text += fmt::format("|{}|{}|{}", p.buffer(b).name, p.buffer(b).bytes(), name_of(p.buffer(b).type.dtype));
  return signatures_.try_emplace(std::move(text), static_cast<int>(signatures_.size())).first->second;
}

// Omits collectives among ranks that behave alike, which complete as soon as one arrives.
RankRun::Operations RankRun::operations_of(const Program& p, int body) {
  Operations list;
  const std::vector<Instruction>& all = p.bodies[static_cast<size_t>(body)].instructions;
  for (size_t at = 0; at < all.size(); ++at) {
    const Instruction& i = all[at];
    const bool message = is_message(i);
    if (!is_collective(i) && !(i.kind == Kind::wait && message)) continue;
    const int group = group_of(i.group);
    if (groups_[static_cast<size_t>(group)].kept.empty()) continue;
    const Action action = !message ? Action::join : is_collective(i) ? Action::post : Action::match;
    const int channel = channels_.try_emplace(i.channel, static_cast<int>(channels_.size())).first->second;
    list.push_back({body, at, &i, signature_of(p, i), group, channel, action});
  }
  return list;
}

void RankRun::check(size_t list) {
  calls_.assign(programs_.distinct.size(), {});
  for (size_t which = 0; which < calls_.size(); ++which) {
    const Program& p = *programs_.distinct[which];
    for (const Call& call : p.lists[list].calls)
      calls_[which].push_back({call.micro_batch, &bodies_[which][static_cast<size_t>(call.body)]});
  }
  run(name_of(programs_.distinct[0]->lists[list].step));
}

// All ranks create their groups in one order, so it suffices that all members create each.
void RankRun::check_groups() {
  struct Use {
    int body = 0;
    size_t at = 0;
  };
  std::vector<std::map<int, Use>> uses(programs_.distinct.size());  // [program][index into groups_]: the first use
  for (size_t which = 0; which < uses.size(); ++which) {
    const std::vector<Body>& bodies = programs_.distinct[which]->bodies;
    for (size_t b = 0; b < bodies.size(); ++b)
      for (size_t at = 0; at < bodies[b].instructions.size(); ++at) {
        const Instruction& i = bodies[b].instructions[at];
        if (is_collective(i) && !is_message(i))
          uses[which].try_emplace(group_of(i.group), Use{static_cast<int>(b), at});
      }
  }
  for (const Rank& r : ranks_)
    for (const auto& [group, use] : uses[r.program]) {
      const std::vector<Factor>& all = groups_[static_cast<size_t>(group)].all;
      if (groups_[static_cast<size_t>(group)].kept.empty()) continue;
      for (int other : members(r, group).ranks) {
        const Rank& o = ranks_[static_cast<size_t>(other)];
        const Program& p = *programs_.distinct[r.program];
        base::require(uses[o.program].contains(group), "verify",
                      "groups: rank {} at instruction {} of {} makes the group over {}, ranks {}, and rank {} does not",
                      r.rank, use.at, p.bodies[static_cast<size_t>(use.body)].name, p.mesh.name_of(all),
                      list_of(p.mesh.group(r.rank, all)), o.rank);
      }
    }
}

void RankRun::run(std::string_view name) {
  members_.clear();
  queue_.clear();
  message_ends_.clear();
  posted_.clear();
  for (size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].call = ranks_[r].operation = 0;
    skip_empty_calls(ranks_[r]);
    enqueue(static_cast<int>(r));
  }
  while (!queue_.empty()) {
    const int r = queue_.back();
    queue_.pop_back();
    ranks_[static_cast<size_t>(r)].queued = false;
    if (!ended(ranks_[static_cast<size_t>(r)])) arrive(r);
  }
  if (!std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& r) { return ended(r); })) report(name);
}

void RankRun::enqueue(int r) {
  Rank& rank = ranks_[static_cast<size_t>(r)];
  if (!rank.queued) queue_.push_back(r);
  rank.queued = true;
}

void RankRun::skip_empty_calls(Rank& r) const {
  while (!ended(r) && r.operation == call_of(r).operations->size()) {
    ++r.call;
    r.operation = 0;
  }
}

void RankRun::advance(int r) {
  Rank& rank = ranks_[static_cast<size_t>(r)];
  ++rank.operation;
  skip_empty_calls(rank);
  enqueue(r);
}

void RankRun::arrive(int r) {
  switch (operation_of(ranks_[static_cast<size_t>(r)]).action) {
    case Action::post:
      return post(r);
    case Action::match:
      if (is_matched(ranks_[static_cast<size_t>(r)])) advance(r);
      return;
    case Action::join:
      return join(r);
  }
}

void RankRun::post(int r) {
  const Rank& rank = ranks_[static_cast<size_t>(r)];
  if (!may_post(rank)) return;
  std::vector<MessageEnd>& ends = message_ends(rank, true);
  posted_[{r, key_of(rank)}] = ends.size();
  ends.push_back({operation_of(rank).signature, call_of(rank).micro_batch});
  const int other = peer_of(rank);
  advance(r);
  const Rank& peer = ranks_[static_cast<size_t>(other)];
  if (!ended(peer) && operation_of(peer).action != Action::join) enqueue(other);
}

void RankRun::join(int r) {
  const Rank& rank = ranks_[static_cast<size_t>(r)];
  Members& m = members(rank, operation_of(rank).group);
  if (++m.num_arrived < m.ranks.size()) return;
  // Equality of operations is transitive only among ranks with the same buffers.
  std::map<int, const Rank*> first;
  for (int i : m.ranks) {
    const Rank& one = ranks_[static_cast<size_t>(i)];
    const Rank* like = first.try_emplace(programs_.same_buffers[one.program], &one).first->second;
    if (!same_operation(one, *like) || !same_operation(one, ranks_[static_cast<size_t>(m.ranks[0])])) return;
  }
  m.num_arrived = 0;
  for (int i : m.ranks) advance(i);
}

RankRun::Members& RankRun::members(const Rank& r, int group) {
  const mesh::Mesh& mesh = programs_.distinct[0]->mesh;
  const std::vector<Factor>& kept = groups_[static_cast<size_t>(group)].kept;
  int64_t first = r.rank;
  for (Factor f : kept) first -= mesh.coordinate(r.rank, f) * mesh.factor(f).stride;
  Members& m = members_[group * static_cast<int64_t>(position_.size()) + first];
  if (m.ranks.empty())
    for (int rank : mesh.group(r.rank, kept)) m.ranks.push_back(position_[static_cast<size_t>(rank)]);
  return m;
}

bool RankRun::same_operation(const Rank& a, const Rank& b) const {
  if (ended(a) || ended(b)) return false;
  const Operation &x = operation_of(a), &y = operation_of(b);
  if (x.signature != y.signature || x.action != Action::join || y.action != Action::join) return false;
  return call_of(a).micro_batch == call_of(b).micro_batch &&
         (programs_.same_buffers[a.program] != programs_.same_buffers[b.program] ||
          (x.instruction->ins == y.instruction->ins && x.instruction->outs == y.instruction->outs));
}

int RankRun::peer_of(const Rank& r) const {
  const Instruction& i = *operation_of(r).instruction;
  const mesh::Mesh& mesh = programs_.distinct[0]->mesh;
  return position_[static_cast<size_t>(rank_at(mesh, r.rank, i.group, i.peer))];
}

std::vector<RankRun::MessageEnd>& RankRun::message_ends(const Rank& r, bool own) {
  const Instruction& i = *operation_of(r).instruction;
  const bool receives = i.collective == Collective::receive;
  const int here = position_[static_cast<size_t>(r.rank)], there = peer_of(r);
  return message_ends_[{receives ? there : here, receives ? here : there, operation_of(r).channel, receives == own}];
}

bool RankRun::is_matched(const Rank& r) {
  const auto posted = posted_.find({position_[static_cast<size_t>(r.rank)], key_of(r)});
  if (posted == posted_.end())
    throw base::InternalError("verify", "rank {} at {} waits for what was not started", r.rank, position_text(r));
  const size_t at = posted->second;
  const std::vector<MessageEnd>& other = message_ends(r, false);
  return at < other.size() && other[at] == message_ends(r, true)[at];
}

bool RankRun::may_post(const Rank& r) {
  const std::vector<MessageEnd>&own = message_ends(r, true), &other = message_ends(r, false);
  return own.empty() || (own.size() <= other.size() && own.back() == other[own.size() - 1]);
}

const RankRun::Rank* RankRun::awaited_by(const Rank& r) {
  switch (operation_of(r).action) {
    case Action::post:
      return may_post(r) ? nullptr : &ranks_[static_cast<size_t>(peer_of(r))];
    case Action::match:
      return is_matched(r) ? nullptr : &ranks_[static_cast<size_t>(peer_of(r))];
    case Action::join:
      for (int i : members(r, operation_of(r).group).ranks)
        if (!same_operation(r, ranks_[static_cast<size_t>(i)])) return &ranks_[static_cast<size_t>(i)];
      return nullptr;
  }
  throw base::InternalError("verify", "no action {}", static_cast<int>(operation_of(r).action));
}

std::string RankRun::position_text(const Rank& r) const {
  const Program& p = *programs_.distinct[r.program];
  const Operation& o = operation_of(r);
  return fmt::format("instruction {} of {} ({})", o.at, describe(p, Call{o.body, call_of(r).micro_batch}),
                     describe(p, *o.instruction, r.rank));
}

// Reports the waiting rank with the least progress: others have passed the point where it waits.
void RankRun::report(std::string_view name) {
  const Rank* least = nullptr;
  const Rank* other = nullptr;
  for (const Rank& r : ranks_) {
    if (ended(r)) continue;
    if (least && std::pair(r.call, operation_of(r).at) >= std::pair(least->call, operation_of(*least).at)) continue;
    if (const Rank* awaited = awaited_by(r)) {
      least = &r;
      other = awaited;
    }
  }
  throw base::InternalError("verify", "{}: rank {} at {} waits for rank {}, which {}", name, least->rank,
                            position_text(*least), other->rank,
                            ended(*other) ? "has ended" : "is at " + position_text(*other));
}

}  // namespace kintsugi::program
