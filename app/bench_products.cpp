#include <fmt/format.h>

#include <algorithm>

#include "app/bench.h"
#include "app/bench_file.h"
#include "app/bench_tables.h"
#include "app/program_of.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/calibrate/describe_machine.h"
#include "kintsugi/calibrate/measure_kernels.h"
#include "kintsugi/train/corpus.h"

namespace kintsugi::app {
namespace {

config::Settings settings_of(const BenchOptions& o) {
  RunOptions run = o.run;
  if (o.ranks) run.sets.insert(run.sets.begin(), fmt::format("parallel.ranks={}", *o.ranks));
  config::Resolved resolved = read_run(run);
  train::complete_from_data(resolved);
  return resolved.settings;
}

// The ranks of the run are the file's devices.
void require_devices(const config::Settings& s, const simulate::Cluster& c) {
  const double threads = static_cast<double>(s.parallel.threads);
  if (c.device.threads != 0 && c.device.threads != threads)
    throw base::UserError("bench",
                          "the ranks of the run have {} thread{}, and a device of {} has {}: --set "
                          "parallel.threads={}",
                          threads, threads == 1 ? "" : "s", c.path, c.device.threads, c.device.threads);
  if (s.parallel.ranks > c.devices())
    throw base::UserError("bench",
                          "{} ranks, but {} describes {} devices; describe as many: kintsugi bench machine --ranks {}",
                          s.parallel.ranks, c.path, c.devices(), s.parallel.ranks);
}

}  // namespace

void bench_products(const BenchOptions& o) {
  require_one_process("bench products");
  const config::Settings s = settings_of(o);
  simulate::Cluster cluster;
  if (!o.into.empty()) {
    cluster = read_measured_cluster(o.into);
    require_devices(s, cluster);
  }
  const std::vector<program::Program> programs = programs_of(s);
  Progress progress("measuring");
  progress.tell("what this machine can do");
  const calibrate::Devices devices = {.ranks = static_cast<int>(s.parallel.ranks),
                                      .threads = static_cast<int>(s.parallel.threads)};
  const int cores = static_cast<int>(std::min<int64_t>(base::usable_cores(), s.parallel.ranks * s.parallel.threads));
  const simulate::Device limits = calibrate::describe_machine(devices, {calibrate::measure_rates(cores)}).device;
  const auto kernels = calibrate::measure_kernels(
      {.settings = s, .stages = programs, .steps = o.steps, .progress = [&](int64_t done, int64_t all) {
         progress.count(done, all, "steps");
       }});
  progress.finish();
  write_out("kernels of {} rank{} at once, {} thread{} each, the mean of their calls\n{}", s.parallel.ranks,
            s.parallel.ranks == 1 ? "" : "s", s.parallel.threads, s.parallel.threads == 1 ? "" : "s",
            kernels_table(kernels, limits));
  if (!o.into.empty()) {
    calibrate::add_kernels(cluster, kernels);
    write_measured_cluster(o.into, cluster);
  }
  require_printed();
}

}  // namespace kintsugi::app
