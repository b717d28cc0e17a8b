#include "kintsugi/train/worlds.h"

#include <algorithm>

#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/limits.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::train {
int64_t cores_of_all(int64_t usable, int64_t of_machine) {
  const std::optional<launch::Launched> l = launch::launched();
  if (!l) return usable;
  // Pinned ranks have separate cores, as far as the machine has enough.
  const bool bound = usable < of_machine;
  const int64_t here = bound ? std::min(usable * l->local, of_machine) : usable;
  return std::max<int64_t>(1, here * l->ranks / l->local);
}

std::vector<std::unique_ptr<comm::World>> make_worlds(const config::Settings& s,
                                                      std::span<const comm::Transport> transports) {
  const auto needed = static_cast<int>(plan::plan_from(s.parallel).mesh.ranks());
  const comm::WorldOptions options = {.time_limit = comm::time_limit(s.parallel.timeout_seconds),
                                      .folder = s.train.folder};
  const std::optional<launch::Launched> l = launch::launched();
  const comm::Transport& transport = comm::choose(transports, s.parallel.transport, l && l->ranks > 1);
  const launch::Process& process = launch::this_process();
  const auto require_all = [&](int size) {
    if (const std::string why = fell_apart(process, size); !why.empty()) throw comm::SharedError("launch", "{}", why);
  };
  if (s.parallel.transport == "auto" && process.wireup == launch::Wireup::none) require_all(1);
  auto worlds = transport.make(needed, options);
  if (transport.launched) {
    const int size = worlds[0]->size();
    if (!fell_apart(process, size).empty()) worlds.clear();  // ends MPI as usual, without the error of a lost rank
    require_all(size);
  }
  return worlds;
}

void require_ranks(const comm::World& world, const config::Settings& s, std::string_view where) {
  const mesh::Mesh mesh = plan::plan_from(s.parallel).mesh;
  if (world.size() == mesh.ranks()) return;
  if (mesh.ranks() == 1) {
    // Each rank gets an equal number of samples of the batch.
    int64_t parts = world.size();
    while (where == "train" && s.train.global_batch % parts != 0) --parts;
    const std::string other =
        parts == 1 ? fmt::format("a batch of {} cannot be divided among {}", s.train.global_batch, world.size())
                   : fmt::format("{}--ranks {} gives each a part of the {}",
                                 parts == world.size() ? "" : fmt::format("{} and ", parts), parts,
                                 where == "train" ? "batch" : "work");
    throw comm::SharedError(where,
                            "the plan is for one rank, {} were started; start one{} {} ([parallel] has other ways)",
                            world.size(), parts == 1 ? ":" : ", or", other);
  }
  throw comm::SharedError(
      where, "the plan needs {} ranks ({}), {} {} started; start {}, or change the sizes in [parallel]", mesh.ranks(),
      to_string(mesh), world.size(), world.size() == 1 ? "was" : "were", mesh.ranks());
}

void require_order(const comm::World& world, const config::Settings& s) {
  if (s.train.reproducible > 0) comm::require_rank_order(world, fmt::format("reproducible = {}", s.train.reproducible));
}

compile::Machine machine_of(const config::Settings& s, device::Device* device) {
  const std::optional<launch::Launched> l = launch::launched();
  const bool processes = s.parallel.transport != "threads" && l && l->ranks > 1;
  const device::Properties p = device == nullptr ? device::Properties() : device->properties();
  return {.memory = base::machine_memory(),
          .processes = processes ? l->local : 0,
          .device_free = p.free,
          .device = p.memory};
}

}  // namespace kintsugi::train
