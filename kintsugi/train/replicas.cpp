#include "kintsugi/train/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/texts_of_all.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/run/state_blocks.h"

namespace kintsugi::train {
namespace {

// Calls f(buffer, the factors over which it is replicated) for each buffer of weights and optimizer states that several
// ranks hold.
template <typename F>
void for_each_replicated_state(const run::Executor& executor, const F& f) {
  const program::Program& p = executor.program();
  std::set<program::BufferId> seen;
  const std::vector<mesh::Factor> pipe = p.mesh.stage_factors();  // ranks hold different states along these
  for (const program::StateInfo& s : p.states) {
    if ((s.kind != program::StateKind::weight && s.kind != program::StateKind::optimizer) ||
        !seen.insert(s.buffer).second)
      continue;
    std::vector<mesh::Factor> alike;
    for (mesh::Factor i = 0; i < static_cast<mesh::Factor>(p.mesh.factors().size()); ++i)
      if (!p.buffer(s.buffer).layout.is_split(i) && !std::count(pipe.begin(), pipe.end(), i)) alike.push_back(i);
    if (!alike.empty()) f(s.buffer, alike);
  }
}

// The same with the communicator of its replicas.
template <typename F>
void for_each_replicated(const run::Executor& executor, comm::World& world, const F& f) {
  std::map<std::vector<mesh::Factor>, std::unique_ptr<comm::Communicator>> groups;
  for_each_replicated_state(executor, [&](program::BufferId buffer, const std::vector<mesh::Factor>& alike) {
    std::unique_ptr<comm::Communicator>& group = groups[alike];
    if (!group) group = world.group(executor.program().mesh.group(world.rank(), alike));
    f(buffer, *group, alike);
  });
}

uint64_t sum_of(const run::Executor& executor, program::BufferId buffer) {
  checkpoint::Checksum sum;
  run::look_at_blocks(executor, buffer, [&](std::span<const std::byte> block) { sum.add(block); });
  return sum.value();
}

}  // namespace

// The states that the same ranks hold.
struct ReplicaChecks::Group {
  std::vector<mesh::Factor> alike;
  std::vector<int> ranks;  // of the world
  std::unique_ptr<comm::Communicator> communicator = {};
  std::vector<program::BufferId> states = {};
};

ReplicaChecks::ReplicaChecks(const run::Executor& executor, comm::World& world, comm::Communicator& all)
    : executor_(executor), world_(world), all_(all) {
  for_each_replicated_state(executor, [&](program::BufferId state, const std::vector<mesh::Factor>& alike) {
    auto found = std::ranges::find(groups_, alike, &Group::alike);
    if (found == groups_.end()) {
      groups_.push_back({.alike = alike, .ranks = executor.program().mesh.group(world.rank(), alike)});
      found = std::prev(groups_.end());
      found->communicator = world.group(found->ranks);
    }
    found->states.push_back(state);
  });
  if (comm::on_any(all, !groups_.empty())) hosts_ = comm::texts_of_all(all, launch::this_process().host);
}

ReplicaChecks::~ReplicaChecks() = default;

void ReplicaChecks::compare(int64_t step) {
  if (hosts_.empty()) return;
  std::string first;  // not thrown at once: others wait in the groups that follow
  for (Group& group : groups_) {
    std::vector<uint64_t> mine, all(group.states.size() * group.ranks.size());
    for (const program::BufferId state : group.states) mine.push_back(sum_of(executor_, state));
    comm::Communicator& c = *group.communicator;
    c.wait(c.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
    for (size_t s = 0; s < mine.size() && first.empty(); ++s) {
      std::vector<uint64_t> sums;
      for (size_t r = 0; r < group.ranks.size(); ++r) sums.push_back(all[r * mine.size() + s]);
      if (std::ranges::all_of(sums, [&](uint64_t x) { return x == sums[0]; })) continue;
      std::vector<std::string> hosts;
      for (const int rank : group.ranks) hosts.push_back(hosts_[static_cast<size_t>(rank)]);
      first = in_words(executor_.program().buffer(group.states[s]).name, group.ranks, hosts, sums);
    }
  }
  comm::together(all_, [&] {
    if (!first.empty())
      throw base::UserError("train", "after step {}: {}; earlier checkpoints were compared before they were saved",
                            step, first);
  });
}

std::string in_words(const std::string& state, const std::vector<int>& ranks, const std::vector<std::string>& hosts,
                     const std::vector<uint64_t>& sums) {
  std::map<uint64_t, int> count;
  for (const uint64_t sum : sums) ++count[sum];
  const uint64_t most = std::ranges::max_element(count, {}, [](const auto& c) { return c.second; })->first;
  const bool majority = 2 * count[most] > static_cast<int>(sums.size());
  const uint64_t usual = majority ? most : sums[0];
  const auto odd = static_cast<size_t>(
      std::distance(sums.begin(), std::ranges::find_if(sums, [&](uint64_t sum) { return sum != usual; })));
  if (!majority)
    return fmt::format("\"{}\" is not the same on ranks {} ({}) and {} ({})", state, ranks[0], hosts[0], ranks[odd],
                       hosts[odd]);
  std::string others;
  for (size_t i = 0; i < sums.size(); ++i)
    if (sums[i] == usual) others += fmt::format(" {}", ranks[i]);
  return fmt::format("\"{}\" is not the same on rank {} ({}) as on rank{}{}", state, ranks[odd], hosts[odd],
                     count[most] == 1 ? "" : "s", others);
}

void check_replicas(const run::Executor& executor, comm::World& world) {
  const program::Program& p = executor.program();
  for_each_replicated(executor, world, [&](program::BufferId b, comm::Communicator& group, const auto& alike) {
    const uint64_t mine = sum_of(executor, b);
    std::vector<uint64_t> all(static_cast<size_t>(group.size()));
    group.wait(group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
    for (size_t i = 1; i < all.size(); ++i)
      if (all[i] != all[0])
        throw base::UserError("train",
                              "\"{}\" is not the same on ranks {} and {}, which hold it alike over {}; "
                              "parallel.replicas = \"broadcast\" makes it so",
                              p.buffer(b).name, p.mesh.group(world.rank(), alike)[0],
                              p.mesh.group(world.rank(), alike)[i], p.mesh.name_of(alike));
  });
}

void broadcast_replicas(run::Executor& executor, comm::World& world) {
  for_each_replicated(executor, world, [&](program::BufferId b, comm::Communicator& group, const auto&) {
    run::change_blocks(executor, b, [&](std::span<std::byte> block) { group.wait(group.broadcast(block, 0)); });
  });
}

}  // namespace kintsugi::train
