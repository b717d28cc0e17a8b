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
  std::string cluster, software = "kintsugi", times;  // times: a CSV file
};

// Simulates a training step, and prints it; writes the file `times` if it is named. UserError as simulate().
void plan_time(const config::Settings& settings, const std::vector<program::Program>& stages,
               const TimeOptions& options);

}  // namespace kintsugi::app
