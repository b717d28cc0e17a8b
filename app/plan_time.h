// The step time that `plan` predicts for a cluster, and its breakdown.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/program/program.h"
#include "kintsugi/simulate/simulate.h"

namespace kintsugi::app {

struct TimeOptions {
  std::string cluster, software = "kintsugi";
  std::string times, trace, timeline;  // files: CSV, for Perfetto, SVG
  std::optional<int64_t> slow_rank;
  double slower = 10;                   // per cent that its kernels take longer
  std::optional<double> node_failures;  // hours between those of a node; by default what the cluster's file says
  std::optional<double> restart;        // minutes; the same
};

struct PlannedTime {
  std::string text;  // to be printed
  simulate::Simulated step;
};

// Simulates a training step. UserError if the cluster, the software profile or an option does not fit the run.
PlannedTime plan_time(const config::Settings& settings, const std::vector<program::Program>& stages,
                      const TimeOptions& options);

// Writes the files that the options name.
void write_time(const PlannedTime& planned, const std::vector<program::Program>& stages, const TimeOptions& options);

}  // namespace kintsugi::app
