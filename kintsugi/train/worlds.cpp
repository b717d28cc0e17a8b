#include "kintsugi/train/worlds.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/together.h"
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

// Of texts that differ: `"train.seed = 5" instead of "train.seed = 1"`.
std::string first_difference(const std::string& one, const std::string& other) {
  std::istringstream a(one), b(other);
  std::string x, y;
  while (x == y && (a || b)) {
    if (!std::getline(a, x)) x.clear();
    if (!std::getline(b, y)) y.clear();
  }
  return fmt::format("\"{}\" instead of \"{}\"", base::one_line(x, 120), base::one_line(y, 120));
}

}  // namespace

std::optional<Launched> launched() {
  struct Names {
    const char *rank, *ranks, *local;
  };
  for (const Names& n : {Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                         Names{"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
                         Names{"PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"}})
    if (std::getenv(n.rank) && number(n.ranks) > 0)
      return Launched{number(n.rank), number(n.ranks), std::max(1, number(n.local))};
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
      .time_limit = std::chrono::milliseconds(static_cast<int64_t>(1000 * s.parallel.timeout_seconds)),
      .folder = s.train.folder};
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
  return mine;
}

void require_ranks(const comm::World& world, const config::Settings& s) {
  const mesh::Mesh mesh = plan::plan_from(s.parallel).mesh;
  if (world.size() == mesh.ranks()) return;
  throw checkpoint::SharedError("train",
                                "the plan needs {} ranks ({}), {} {} started; start {}, or change the sizes in "
                                "[parallel]",
                                mesh.ranks(), to_string(mesh), world.size(), world.size() == 1 ? "was" : "were",
                                mesh.ranks());
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
  const auto other = std::find(everyone.begin(), everyone.end(), 1);
  if (other == everyone.end()) return;
  const auto rank = static_cast<int>(other - everyone.begin());
  std::array<char, 512> text = {};
  if (all.rank() == rank) first_difference(mine, first).copy(text.data(), text.size() - 1);
  all.wait(all.broadcast(bytes(text.data(), text.size()), rank));
  throw checkpoint::SharedError("train", "rank {} has another {} than rank 0: {}; start all ranks with one", rank, what,
                                text.data());
}

}  // namespace kintsugi::train
