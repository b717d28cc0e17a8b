#include "kintsugi/program/rank_run.h"

#include <algorithm>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/program/describe.h"

namespace kintsugi::program {

using mesh::Factor;

RankRun::RankRun(std::vector<const Program*> distinct, const std::vector<int>& of_rank, std::vector<int> family,
                 std::vector<Factor> factors)
    : distinct_(std::move(distinct)),
      family_(std::move(family)),
      factors_(std::move(factors)),
      index_(of_rank.size(), -1) {
  for (const Program* p : distinct_) {
    bodies_.emplace_back();
    for (size_t b = 0; b < p->bodies.size(); ++b) bodies_.back().push_back(operations_of(*p, static_cast<int>(b)));
  }
  for (int rank : distinct_[0]->mesh.group(0, factors_)) {
    index_[static_cast<size_t>(rank)] = static_cast<int>(ranks_.size());
    ranks_.push_back({.rank = rank, .role = static_cast<size_t>(of_rank[static_cast<size_t>(rank)])});
  }
}

int RankRun::group_of(const std::vector<Factor>& all) {
  for (size_t g = 0; g < groups_.size(); ++g)
    if (groups_[g].all == all) return static_cast<int>(g);
  groups_.push_back({all, {}});
  for (Factor f : all)
    if (std::count(factors_.begin(), factors_.end(), f) > 0) groups_.back().kept.push_back(f);
  return static_cast<int>(groups_.size()) - 1;
}

int RankRun::signature_of(const Program& p, const Instruction& i) {
  std::string text = is_message(i) ? std::string("message") : fmt::format("{} {}", name_of(i.collective), name_of(i.reduction));
  text += fmt::format("|{}", group_of(i.group));
  for (const auto* operands : {&i.ins, &i.outs})
    for (BufferId b : *operands)
      text += fmt::format("|{}|{}|{}", p.buffer(b).name, p.buffer(b).bytes(), name_of(p.buffer(b).type.dtype));
  return signatures_.try_emplace(std::move(text), static_cast<int>(signatures_.size())).first->second;
}

// Those among ranks that are alike are done as soon as one comes.
RankRun::Operations RankRun::operations_of(const Program& p, int body) {
  Operations list;
  const std::vector<Instruction>& all = p.bodies[static_cast<size_t>(body)].instructions;
  for (size_t at = 0; at < all.size(); ++at) {
    const bool message = is_message(all[at]), starts = all[at].kind == program::Kind::collective;
    if (!starts && !(all[at].kind == program::Kind::wait && message)) continue;
    const int group = group_of(all[at].group);
    if (groups_[static_cast<size_t>(group)].kept.empty()) continue;
    list.push_back({body, at, &all[at], signature_of(p, all[at]), group,
                    !message ? Kind::meet
                    : starts ? Kind::post
                             : Kind::take});
  }
  return list;
}

void RankRun::check(Step step) {
  blocks_.assign(distinct_.size(), {});
  for (size_t role = 0; role < distinct_.size(); ++role)
    for (const Call& call : distinct_[role]->list(step).calls)
      blocks_[role].push_back({call.micro_batch, &bodies_[role][static_cast<size_t>(call.body)]});
  run(name_of(step));
}

// All ranks make their groups in one order, so it is enough that all members make each.
void RankRun::check_groups() {
  struct Use {
    int body = 0;
    size_t at = 0;
  };
  std::vector<std::map<int, Use>> uses(distinct_.size());  // by role, by place in groups_: the first
  for (size_t role = 0; role < distinct_.size(); ++role)
    for (size_t b = 0; b < distinct_[role]->bodies.size(); ++b) {
      const std::vector<Instruction>& all = distinct_[role]->bodies[b].instructions;
      for (size_t at = 0; at < all.size(); ++at)
        if (all[at].kind == program::Kind::collective && !is_message(all[at]))
          uses[role].try_emplace(group_of(all[at].group), Use{static_cast<int>(b), at});
    }
  for (const Rank& r : ranks_)
    for (const auto& [group, use] : uses[r.role]) {
      const std::vector<Factor>& all = groups_[static_cast<size_t>(group)].all;
      if (groups_[static_cast<size_t>(group)].kept.empty()) continue;
      for (int other : members(r, group).ranks) {
        const Rank& o = ranks_[static_cast<size_t>(other)];
        const Program& p = *distinct_[r.role];
        base::require(uses[o.role].contains(group), "verify",
                      "groups: rank {} at instruction {} of {} makes the group over {}, ranks {}, and rank {} does not",
                      r.rank, use.at, p.bodies[static_cast<size_t>(use.body)].name, p.mesh.name_of(all),
                      list_of(p.mesh.group(r.rank, all)), o.rank);
      }
    }
}

void RankRun::run(std::string_view name) {
  members_.clear();
  queue_.clear();
  ends_.clear();
  posted_.clear();
  for (size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].block = ranks_[r].at = 0;
    ranks_[r].queued = true;
    settle(ranks_[r]);
    queue_.push_back(static_cast<int>(r));
  }
  while (!queue_.empty()) {
    const int r = queue_.back();
    queue_.pop_back();
    ranks_[static_cast<size_t>(r)].queued = false;
    if (!ended(ranks_[static_cast<size_t>(r)])) arrive(r);
  }
  if (!std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& r) { return ended(r); })) report(name);
}

void RankRun::settle(Rank& r) const {
  while (!ended(r) && r.at == blocks_[r.role][r.block].operations->size()) {
    ++r.block;
    r.at = 0;
  }
}

void RankRun::advance(int at) {
  Rank& r = ranks_[static_cast<size_t>(at)];
  ++r.at;
  settle(r);
  if (!r.queued) queue_.push_back(at);
  r.queued = true;
}

void RankRun::arrive(int at) {
  Rank& r = ranks_[static_cast<size_t>(at)];
  if (now(r).kind == Kind::post) {
    post(r);
    const int other = peer_of(r);
    advance(at);
    Rank& peer = ranks_[static_cast<size_t>(other)];
    if (!ended(peer) && now(peer).kind == Kind::take && !peer.queued) {
      queue_.push_back(other);
      peer.queued = true;
    }
    return;
  }
  if (now(r).kind == Kind::take) {
    if (taken(r)) advance(at);
    return;
  }
  Members& m = members(r, now(r).group);
  if (++m.here < m.ranks.size()) return;
  // To be the same is kept from one to the next within a family only.
  std::map<int, const Rank*> first;
  for (int i : m.ranks) {
    const Rank& one = ranks_[static_cast<size_t>(i)];
    const Rank* like = first.try_emplace(family_[one.role], &one).first->second;
    if (!same(one, *like) || !same(one, ranks_[static_cast<size_t>(m.ranks[0])])) return;
  }
  m.here = 0;
  for (int i : m.ranks) advance(i);
}

RankRun::Members& RankRun::members(const Rank& r, int group) {
  const mesh::Mesh& mesh = distinct_[0]->mesh;
  const std::vector<Factor>& kept = groups_[static_cast<size_t>(group)].kept;
  int64_t first = r.rank;
  for (Factor f : kept) first -= mesh.coordinate(r.rank, f) * mesh.factor(f).stride;
  Members& m = members_[group * static_cast<int64_t>(index_.size()) + first];
  if (m.ranks.empty())
    for (int rank : mesh.group(r.rank, kept)) m.ranks.push_back(index_[static_cast<size_t>(rank)]);
  return m;
}

bool RankRun::same(const Rank& a, const Rank& b) const {
  if (ended(a) || ended(b)) return false;
  const Operation &x = now(a), &y = now(b);
  if (x.signature != y.signature || x.kind != Kind::meet || y.kind != Kind::meet) return false;
  return blocks_[a.role][a.block].micro_batch == blocks_[b.role][b.block].micro_batch &&
         (family_[a.role] != family_[b.role] ||
          (x.instruction->ins == y.instruction->ins && x.instruction->outs == y.instruction->outs));
}

int RankRun::peer_of(const Rank& r) const {
  const Instruction& i = *now(r).instruction;
  return index_[static_cast<size_t>(distinct_[0]->mesh.group(r.rank, i.group)[static_cast<size_t>(i.peer)])];
}

std::vector<RankRun::End>& RankRun::ends(const Rank& r, bool own) {
  const Instruction& i = *now(r).instruction;
  const bool receives = i.collective == Collective::receive;
  const int here = index_[static_cast<size_t>(r.rank)], there = peer_of(r);
  return ends_[{receives ? there : here, receives ? here : there, i.channel, receives == own}];
}

void RankRun::post(const Rank& r) {
  std::vector<End>& list = ends(r, true);
  const int64_t m = blocks_[r.role][r.block].micro_batch;
  posted_[{index_[static_cast<size_t>(r.rank)], now(r).instruction->event, m}] = list.size();
  list.push_back({now(r).signature, m});
}

bool RankRun::taken(const Rank& r) {
  const int64_t m = blocks_[r.role][r.block].micro_batch;
  const auto at = posted_.find({index_[static_cast<size_t>(r.rank)], now(r).instruction->event, m});
  base::require(at != posted_.end(), "verify", "rank {} at {} waits for what was not started", r.rank, place(r));
  const std::vector<End>& other = ends(r, false);
  return at->second < other.size() && other[at->second] == ends(r, true)[at->second];
}

const RankRun::Rank* RankRun::missing(const Rank& r) {
  if (now(r).kind == Kind::post) return nullptr;
  if (now(r).kind == Kind::take) return taken(r) ? nullptr : &ranks_[static_cast<size_t>(peer_of(r))];
  for (int i : members(r, now(r).group).ranks)
    if (!same(r, ranks_[static_cast<size_t>(i)])) return &ranks_[static_cast<size_t>(i)];
  return nullptr;
}

std::string RankRun::place(const Rank& r) const {
  const Program& p = *distinct_[r.role];
  const Operation& o = now(r);
  return fmt::format("instruction {} of {} ({})", o.at, describe(p, Call{o.body, blocks_[r.role][r.block].micro_batch}),
                     describe(p, *o.instruction, r.rank));
}

// Of the ranks that wait, the one that has come least far: others are past the place where it waits.
void RankRun::report(std::string_view name) {
  const Rank* least = nullptr;
  const Rank* other = nullptr;
  const auto place_of = [&](const Rank& r) { return std::pair(r.block, now(r).at); };
  for (const Rank& r : ranks_) {
    if (ended(r) || (least && place_of(r) >= place_of(*least))) continue;
    if (const Rank* m = missing(r)) {
      least = &r;
      other = m;
    }
  }
  throw base::InternalError("verify", "{}: rank {} at {} waits for rank {}, which {}", name, least->rank, place(*least),
                            other->rank, ended(*other) ? "has ended" : "is at " + place(*other));
}

}  // namespace kintsugi::program
