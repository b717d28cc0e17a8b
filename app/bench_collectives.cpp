#include <fmt/format.h>

#include <algorithm>

#include "app/bench.h"
#include "app/bench_file.h"
#include "app/bench_tables.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/base/thread_team.h"
#include "kintsugi/calibrate/describe_machine.h"
#include "kintsugi/comm/limits.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/comm/transports.h"
#include "kintsugi/config/memory_size.h"
#include "kintsugi/kernels/host/bandwidth.h"
#include "kintsugi/launch/process.h"

namespace kintsugi::app {
namespace {

constexpr int64_t kMostBytes = int64_t{4} << 30;

std::vector<int64_t> sizes_of(const BenchOptions& o) {
  if (o.sizes.empty()) return standard_sizes();
  std::vector<int64_t> sizes;
  for (const std::string& text : o.sizes) {
    const auto bytes = config::memory_size(text);
    if (!bytes || *bytes > kMostBytes)
      throw base::UserError("bench", "--sizes {}: write sizes up to 4 GiB, e.g. 1KiB 64KiB 1MiB",
                            base::in_quotes(text, 60));
    sizes.push_back(*bytes);
  }
  return sizes;
}

int ranks_of(const BenchOptions& o, const std::optional<launch::Launched>& launched) {
  const int started = launched && o.transport != "threads" ? launched->ranks : 1;
  if (o.ranks && started > 1 && *o.ranks != started)
    throw base::UserError("bench", "--ranks {} does not match the {} processes that were started", *o.ranks, started);
  const int ranks = started > 1 ? started : static_cast<int>(o.ranks ? *o.ranks : base::usable_cores());
  if (ranks < 2) throw base::UserError("bench", "a single rank has no peer to communicate with; use --ranks 2");
  return ranks;
}

// Combined memory traffic of all ranks, in bytes per second.
double memory_of_all(comm::World& world) {
  const auto all = comm::group_of_all(world);
  base::ThreadTeam team(1);
  all->wait(all->barrier());
  const double mine = kernels::host::measure_memory_bandwidth(team, int64_t{32} << 20);
  double sum = 0;
  all->wait(all->all_reduce(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(&sum, 1)),
                            tensor::DType::f64, comm::Reduction::sum));
  return sum;
}

}  // namespace

void bench_collectives(const BenchOptions& o) {
  const auto launched = launch::launched();
  simulate::Cluster cluster;
  const auto worlds = before_ranks_meet([&] {
    if (!o.run.path.empty())
      throw base::UserError("bench", "collectives takes no run; for its kernels: kintsugi bench products {}",
                            o.run.path);
    sizes_of(o);
    if (!o.into.empty()) cluster = read_measured_cluster(o.into);
    const int ranks = ranks_of(o, launched);
    return comm::choose(comm::transports(), o.transport, launched && launched->ranks > 1).make(ranks, {});
  });
  std::vector<calibrate::CollectiveTime> times;
  double memory = 0;
  Progress progress("measuring");
  try {
    if (worlds[0]->size() == 1)
      throw base::UserError(
          "bench",
          "collectives need at least two ranks; start it with mpirun -n 2, or use --transport threads --ranks 2");
    require_same_start(worlds, "bench", "bench collectives");
    comm::run_ranks(worlds, [&](comm::World& world) {
      const double bytes = memory_of_all(world);
      const auto mine = calibrate::measure_collectives(
          world,
          {.sizes = sizes_of(o), .progress = [&](calibrate::Operation what, int64_t size) {
             progress.tell(fmt::format("{} of {}", name_of(what), base::format_bytes(static_cast<uint64_t>(size))));
           }});
      if (&world != worlds[0].get()) return;
      times = mine;
      memory = bytes;
    });
  } catch (const std::exception& e) {
    progress.finish();
    end_all(worlds, e);
    throw;
  }
  progress.finish();
  if (worlds[0]->rank() != 0) return;
  write_out("{} over {}; copying, their memory reads and writes {}\n{}", base::counted(worlds[0]->size(), "rank"),
            worlds[0]->backend().name, base::format_rate(memory, "B/s"), collectives_table(times, memory));
  if (!o.into.empty()) {
    calibrate::add_transfers(cluster, times);
    write_measured_cluster(o.into, cluster);
  }
  require_printed();
}

}  // namespace kintsugi::app
