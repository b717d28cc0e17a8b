#include "kintsugi/train/replicas.h"

#include <algorithm>
#include <map>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/run/state_blocks.h"

namespace kintsugi::train {
namespace {

// Calls f(buffer, communicator of its replicas, their factors) for each buffer of weights and optimizer states.
template <typename F>
void for_each_replicated(const run::Executor& executor, comm::World& world, const F& f) {
  const program::Program& p = executor.program();
  std::map<std::vector<mesh::Factor>, std::unique_ptr<comm::Communicator>> groups;
  std::set<program::BufferId> seen;
  const std::vector<mesh::Factor> pipe = p.mesh.stage_factors();  // ranks hold different states along these
  for (const program::StateInfo& s : p.states) {
    if ((s.kind != program::StateKind::weight && s.kind != program::StateKind::optimizer) ||
        !seen.insert(s.buffer).second)
      continue;
    std::vector<mesh::Factor> alike;
    for (mesh::Factor i = 0; i < static_cast<mesh::Factor>(p.mesh.factors().size()); ++i)
      if (!p.buffer(s.buffer).layout.is_split(i) && !std::count(pipe.begin(), pipe.end(), i)) alike.push_back(i);
    if (alike.empty()) continue;
    std::unique_ptr<comm::Communicator>& group = groups[alike];
    if (!group) group = world.group(p.mesh.group(world.rank(), alike));
    f(s.buffer, *group, alike);
  }
}

}  // namespace

void check_replicas(const run::Executor& executor, comm::World& world) {
  const program::Program& p = executor.program();
  for_each_replicated(executor, world, [&](program::BufferId b, comm::Communicator& group, const auto& alike) {
    checkpoint::Checksum sum;
    run::look_at_blocks(executor, b, [&](std::span<const std::byte> block) { sum.add(block); });
    const uint64_t mine = sum.value();
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
