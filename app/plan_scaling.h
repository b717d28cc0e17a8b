// `scaling`: a step of the run's layout with an increasing number of replicas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/settings.h"

namespace kintsugi::app {

struct ScalingOptions {
  std::string cluster, software;
  std::vector<int64_t> devices;
  std::string svg, times;  // files: a picture, CSV
};

// Prints it for the run's batch (strong scaling) and for the run's samples per replica (weak scaling). Writes the named
// files. UserError for a number of devices that the layout does not fill, or that the cluster lacks.
void plan_scaling(const config::Settings& settings, const ScalingOptions& options);

// "8,64,512". UserError for other texts, with the verb and the option.
std::vector<int64_t> numbers_of_devices(const std::string& text, std::string_view verb = "plan",
                                        std::string_view option = "--devices");

int64_t devices_of_replica(const config::Settings& settings);
// The run with this many replicas and samples per step; empty if they do not divide the batch.
std::optional<config::Settings> with_replicas(config::Settings settings, int64_t data, int64_t samples);

}  // namespace kintsugi::app
