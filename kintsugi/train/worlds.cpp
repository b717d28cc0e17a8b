#include "kintsugi/train/worlds.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/mpi_world.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::train {
namespace {

int number(const char* name) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : 0;
}

std::span<const std::byte> bytes(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

std::span<std::byte> bytes(void* data, size_t size) {
  return {static_cast<std::byte*>(data), size};
}

}  // namespace

std::optional<Launched> launched() {
  constexpr std::pair<const char*, const char*> names[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                                           {"PMI_SIZE", "MPI_LOCALNRANKS"}};
  for (const auto& [ranks, local] : names)
    if (number(ranks) > 0) return Launched{number(ranks), std::max(1, number(local))};
  return std::nullopt;
}

int64_t cores_of_all(int64_t usable, int64_t of_machine) {
  const std::optional<Launched> l = launched();
  if (!l) return usable;
  const bool bound = usable < of_machine;
  return l->ranks * (bound ? usable : std::max<int64_t>(1, usable / l->local));
}

std::vector<std::unique_ptr<comm::World>> make_worlds(const config::Settings& s) {
  const auto needed = static_cast<int>(plan::plan_from(s.parallel).mesh.ranks());
  const comm::WorldOptions options = {
      .time_limit = std::chrono::milliseconds(static_cast<int64_t>(1000 * s.parallel.timeout_seconds))};
  const std::optional<Launched> l = launched();
  const bool mpi = s.parallel.transport == "mpi" || (s.parallel.transport == "auto" && l && l->ranks > 1);
  if (!mpi) {
    if (needed == 1) {
      std::vector<std::unique_ptr<comm::World>> one;
      one.push_back(comm::self_world());
      return one;
    }
    return comm::thread_worlds(needed, options);
  }
  std::vector<std::unique_ptr<comm::World>> mine;
  mine.push_back(comm::mpi_world(options));
  const int there = mine[0]->size();
  if (there != needed) {
    const std::string what =
        fmt::format("the plan needs {} ranks ({}), {} were started; start {}, or change the sizes in [parallel]",
                    needed, to_string(plan::plan_from(s.parallel).mesh), there, needed);
    if (mine[0]->rank() == 0) fmt::print(stderr, "error: [train] {}\n", what);
    mine[0]->abort(what);
    throw base::UserError("train", "{}", what);
  }
  return mine;
}

std::string text_of_leader(comm::Communicator& all, const std::string& mine) {
  int64_t size = static_cast<int64_t>(mine.size());
  all.wait(all.broadcast(bytes(&size, sizeof size), 0));
  std::string text = all.rank() == 0 ? mine : std::string(static_cast<size_t>(size), '\0');
  if (size > 0) all.wait(all.broadcast(bytes(text.data(), text.size()), 0));
  return text;
}

void require_same(comm::Communicator& all, const std::string& what, const std::string& mine) {
  const std::string first = text_of_leader(all, mine);
  const int32_t differs = first == mine ? 0 : 1;
  std::vector<int32_t> everyone(static_cast<size_t>(all.size()));
  all.wait(all.all_gather(bytes(&differs, sizeof differs), bytes(everyone.data(), everyone.size() * sizeof(int32_t))));
  for (size_t rank = 0; rank < everyone.size(); ++rank) {
    if (!everyone[rank]) continue;
    std::string here, there;
    std::istringstream a(first), b(mine);
    while (here == there && (a || b)) {
      if (!std::getline(a, there)) there.clear();
      if (!std::getline(b, here)) here.clear();
    }
    if (!differs)
      throw base::UserError("train", "rank {} has another {} than rank {}; start all ranks with one", rank, what,
                            all.rank());
    throw base::UserError("train",
                          "rank {} has another {} than rank 0: \"{}\" instead of \"{}\"; start all ranks with one",
                          all.rank(), what, here, there);
  }
}

}  // namespace kintsugi::train
