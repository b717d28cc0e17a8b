// The step time that `plan` prints for a described cluster, and where it goes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/program/program.h"
#include "kintsugi/simulate/simulate.h"

namespace kintsugi::app {

struct TimeOptions {
  std::string cluster, software = "kintsugi";
  std::string times, trace;  // files: CSV, and for Perfetto
};

// Simulates a training step, and prints it; writes the files that are named. UserError as simulate().
void plan_time(const config::Settings& settings, const std::vector<program::Program>& stages,
               const TimeOptions& options);

}  // namespace kintsugi::app
