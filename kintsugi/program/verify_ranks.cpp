#include "kintsugi/program/verify_ranks.h"

#include <algorithm>
#include <map>

#include "kintsugi/base/error.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/rank_run.h"
#include "kintsugi/program/verify_communication.h"

namespace kintsugi::program {
namespace {

bool have_same_buffers(const Program& a, const Program& b) {
  return a.stage == b.stage &&
         std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(),
                    [](const Buffer& x, const Buffer& y) { return x.name == y.name && x.type == y.type; });
}

// Also the first rank of each program.
struct RanksOfPrograms : RankPrograms {
  explicit RanksOfPrograms(std::span<const Program* const> programs) {
    std::map<const Program*, int> known;
    for (size_t rank = 0; rank < programs.size(); ++rank) {
      const auto [at, fresh] = known.try_emplace(programs[rank], static_cast<int>(distinct.size()));
      of_rank.push_back(at->second);
      if (!fresh) continue;
      distinct.push_back(programs[rank]);
      first_rank.push_back(static_cast<int>(rank));
      int like = 0;
      while (!have_same_buffers(*distinct[static_cast<size_t>(like)], *programs[rank])) ++like;
      same_buffers.push_back(like);
    }
  }

  std::vector<int> first_rank;
};

// Ranks with the same buffers must make the same calls, including those that do not communicate.
void check_calls(const RanksOfPrograms& all, size_t list) {
  for (size_t r = 0; r < all.distinct.size(); ++r) {
    const auto like = static_cast<size_t>(all.same_buffers[r]);
    const Program &p = *all.distinct[r], &q = *all.distinct[like];
    const std::vector<Call>&a = p.lists[list].calls, &b = q.lists[list].calls;
    const auto name = [](const Program& of, const std::vector<Call>& calls, size_t at) {
      return at < calls.size() ? describe(of, calls[at]) : "nothing";
    };
    for (size_t c = 0; c < std::max(a.size(), b.size()); ++c)
      base::require(name(p, a, c) == name(q, b, c), "verify",
                    "{}: call {} of rank {} is {}, and of rank {}, which has the same buffers, {}",
                    name_of(p.lists[list].step), c, all.first_rank[r], name(p, a, c), all.first_rank[like],
                    name(q, b, c));
  }
}

// The factors along which the progress of ranks may differ.
std::vector<mesh::Factor> differing_factors(const mesh::Mesh& mesh, const RankPrograms& programs) {
  std::vector<mesh::Factor> list;
  for (size_t at = 0; at < mesh.factors().size(); ++at) {
    const auto f = static_cast<mesh::Factor>(at);
    const mesh::FactorInfo& info = mesh.factor(f);
    bool differs = false;
    for (size_t rank = 0; rank < programs.of_rank.size() && !differs; ++rank) {
      const auto back = static_cast<size_t>(mesh.coordinate(static_cast<int>(rank), f) * info.stride);
      differs = programs.of_rank[rank] != programs.of_rank[rank - back];
    }
    for (const Program* p : programs.distinct)
      for (const Body& body : p->bodies)
        for (const Instruction& i : body.instructions)
          differs |= is_collective(i) && is_message(i) && std::count(i.group.begin(), i.group.end(), f) > 0;
    if (differs) list.push_back(f);
  }
  return list;
}

}  // namespace

void verify_ranks(std::span<const Program* const> programs) {
  base::require(!programs.empty(), "verify", "no program");
  const mesh::Mesh& mesh = programs[0]->mesh;
  base::require(static_cast<int64_t>(programs.size()) == mesh.ranks(), "verify", "{} programs for {} ranks",
                programs.size(), mesh.ranks());
  const RanksOfPrograms all(programs);
  for (size_t r = 0; r < all.distinct.size(); ++r) {
    const Program& p = *all.distinct[r];
    base::require(p.mesh == mesh, "verify", "rank {} has the mesh {}, and rank 0 {}", all.first_rank[r],
                  to_string(p.mesh), to_string(mesh));
    base::require(p.lists.size() == programs[0]->lists.size(), "verify", "rank {} has {} lists, and rank 0 {}",
                  all.first_rank[r], p.lists.size(), programs[0]->lists.size());
    for (size_t l = 0; l < p.lists.size(); ++l) {
      const CallList &mine = p.lists[l], &first = programs[0]->lists[l];
      base::require(mine.step == first.step && mine.micro_batches == first.micro_batches, "verify",
                    "list {} of rank {} is \"{}\", and of rank 0 \"{}\"", l, all.first_rank[r], name_of(mine.step),
                    name_of(first.step));
    }
    verify_communication(p, all.first_rank[r]);
  }
  const std::vector<mesh::Factor> factors = differing_factors(mesh, all);
  if (factors.empty()) return;
  RankRun run(all, factors);
  for (size_t list = 0; list < programs[0]->lists.size(); ++list) {
    run.check(list);
    check_calls(all, list);
  }
  run.check_groups();
}

void verify_ranks(const Program& p) {
  const std::vector<const Program*> programs(static_cast<size_t>(p.mesh.ranks()), &p);
  verify_ranks(programs);
}

void verify_ranks(const std::vector<Program>& stages) {
  std::vector<const Program*> programs;
  for (int rank = 0; rank < stages[0].mesh.ranks(); ++rank)
    programs.push_back(&stages[static_cast<size_t>(stages[0].mesh.stage_of(rank))]);
  verify_ranks(programs);
}

}  // namespace kintsugi::program
