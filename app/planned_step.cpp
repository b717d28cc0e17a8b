#include "app/planned_step.h"

#include <fmt/format.h>

#include <memory>

#include "app/standard_streams.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/simulate/simulate.h"

namespace kintsugi::app {

train::PlanStep plan_step(const config::Settings& s) {
  if (s.parallel.cluster.empty()) return {};
  const auto cluster = std::make_shared<simulate::Cluster>(simulate::read_cluster(s.parallel.cluster));
  const double threads = static_cast<double>(s.parallel.threads);
  const auto launched = launch::launched();
  const bool leads = !launched || launched->rank == 0;
  if (leads && cluster->device.threads > 0 && cluster->device.threads != threads)
    write_err("warning: ranks have {} thread{}, and a device of {} has {}: steps take another time\n", threads,
              threads == 1 ? "" : "s", cluster->path, cluster->device.threads);
  return [cluster](const std::vector<program::Program>& stages) {
    return simulate::simulate(stages, *cluster, simulate::softwares().front()).seconds;
  };
}

}  // namespace kintsugi::app
