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
#include "kintsugi/calibrate/describe_machine.h"
#include "kintsugi/calibrate/measure_kernels.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/kernels/host/peak.h"
#include "kintsugi/models/models.h"
#include "kintsugi/simulate/write_cluster.h"

namespace kintsugi::app {
namespace {

// GPT layers of several widths: matmuls of many sizes, and each kernel of a decoder from small to large.
struct StandardRun {
  int64_t embed, micro_batch, sequence, micro_batches;
};
constexpr StandardRun kRuns[] = {{128, 4, 128, 2}, {256, 8, 128, 2}, {512, 4, 256, 1}, {1024, 2, 256, 1}};

config::Settings settings_of(const StandardRun& r, std::string_view dtype, const calibrate::Devices& d) {
  const std::string text = fmt::format(
      "[model]\nlayers = 1\nembed = {}\nheads = {}\nvocab = 8192\n[train]\nsequence = {}\nmicro_batch = {}\n"
      "global_batch = {}\ndtype = \"{}\"\n[parallel]\ndata = {}\nthreads = {}\n",
      r.embed, r.embed / 64, r.sequence, r.micro_batch, r.micro_batches * r.micro_batch * d.ranks, dtype, d.ranks,
      d.threads);
  return config::resolve(config::read_text(text, "bench machine", models::catalog()), d.ranks * d.threads).settings;
}

std::vector<simulate::MeasuredKernel> standard_kernels(const calibrate::Devices& devices, Progress& progress) {
  simulate::Measured all;
  for (const std::string_view dtype : {"fp32", "bf16"})
    for (const StandardRun& r : kRuns) {
      progress.tell(fmt::format("kernels of width {} in {}", r.embed, dtype));
      const config::Settings s = settings_of(r, dtype, devices);
      const auto programs = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
      for (const simulate::MeasuredKernel& k : calibrate::measure_kernels({.settings = s, .stages = programs}))
        all.add(k);
    }
  return all.kernels;
}

std::vector<calibrate::CollectiveTime> thread_collectives(int ranks, Progress& progress) {
  std::vector<calibrate::CollectiveTime> times;
  const auto worlds = comm::thread_worlds(ranks);
  comm::run_ranks(worlds, [&](comm::World& world) {
    const auto mine = calibrate::measure_collectives(
        world, {.sizes = standard_sizes(), .seconds = 0.02, .progress = [&](calibrate::Operation o, int64_t) {
                  progress.tell(fmt::format("{} of {} threads", name_of(o), ranks));
                }});
    if (world.rank() == 0) times = mine;
  });
  return times;
}

}  // namespace

void bench_machine(const BenchOptions& o) {
  require_one_process("bench machine");
  if (!o.run.path.empty())
    throw base::UserError("bench", "machine takes no run; for the kernels of one: kintsugi bench products {}",
                          o.run.path);
  require_into(o.into);
  const int64_t cores = base::usable_cores();
  const calibrate::Devices devices = {
      .ranks = static_cast<int>(o.ranks ? *o.ranks : std::max<int64_t>(1, cores / o.threads)),
      .threads = static_cast<int>(o.threads)};
  Progress progress("measuring");
  const auto rates = calibrate::measure_cores(static_cast<int>(cores), [&](int n) {
    progress.tell(fmt::format("arithmetic and memory of {} core{}", n, n == 1 ? "" : "s"));
  });
  simulate::Cluster cluster = calibrate::describe_machine(devices, rates);
  calibrate::add_kernels(cluster, standard_kernels(devices, progress));
  if (devices.ranks > 1) calibrate::add_transfers(cluster, thread_collectives(devices.ranks, progress));
  progress.finish();
  const base::Processor processor = base::this_processor();
  write_out("{}, {} core{} usable, {}\n{}", processor.name.empty() ? "unnamed processor" : processor.name, cores,
            cores == 1 ? "" : "s", kernels::host::simd_target(), cores_table(rates));
  write_out("a device: {} thread{}, {} at once; kernels of layers from {} to {} wide\n{}", devices.threads,
            devices.threads == 1 ? "" : "s", devices.ranks, kRuns[0].embed, std::rbegin(kRuns)->embed,
            kernels_table(cluster.measured.kernels, cluster.device));
  if (!o.into.empty()) write_measured_cluster(o.into, cluster);
  require_printed();
}

}  // namespace kintsugi::app
