// `plan --cluster --devices 8,64,512`: a step of the run's layout with more and more replicas.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"

namespace kintsugi::app {

struct ScalingOptions {
  std::string cluster, software;
  std::vector<int64_t> devices;
  std::string svg, times;  // files: a picture, CSV
};

// Prints it, with the batch of the run (strong scaling) and with as many samples a replica as the run has (weak).
// Writes the files that are named. UserError for a number of devices that the layout does not fill, or the cluster does
// not have.
void plan_scaling(const config::Settings& settings, const ScalingOptions& options);

// "8,64,512". UserError for another text.
std::vector<int64_t> numbers_of_devices(const std::string& text);

}  // namespace kintsugi::app
