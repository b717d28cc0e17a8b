#include "kintsugi/comm/transports.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/mpi_world.h"

namespace kintsugi::comm {
namespace {

std::vector<std::unique_ptr<World>> only(std::unique_ptr<World> world) {
  std::vector<std::unique_ptr<World>> worlds;
  worlds.push_back(std::move(world));
  return worlds;
}

std::vector<std::unique_ptr<World>> in_this_process(int ranks, const WorldOptions& options) {
  return ranks == 1 ? only(self_world()) : thread_worlds(ranks, options);
}

std::vector<std::unique_ptr<World>> over_mpi(int, const WorldOptions& options) {
  return only(mpi_world(options));
}

}  // namespace

std::span<const Transport> transports() {
  static const std::array list = {Transport{"threads", false, in_this_process}, Transport{"mpi", true, over_mpi}};
  return list;
}

const Transport& choose(std::span<const Transport> transports, std::string_view name, bool launched) {
  std::string names;
  for (const Transport& t : transports) {
    if (t.name == name || (name == "auto" && t.launched == launched)) return t;
    names += fmt::format(", {}", t.name);
  }
  throw base::UserError("comm", "unknown transport \"{}\"; known transports: auto{}", name, names);
}

}  // namespace kintsugi::comm
