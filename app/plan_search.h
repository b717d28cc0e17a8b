// `search`: the fastest layouts of a run on a cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kintsugi/config/settings.h"

namespace kintsugi::app {

struct SearchOptions {
  std::string cluster;
  std::optional<int64_t> devices;  // the run's ranks if it has several; all of the cluster
  double seconds = 60;             // after which it ends
  std::string svg;
};

// Prints them; writes the picture. UserError if no layout fits.
void plan_search(const config::Settings& settings, const SearchOptions& options);

}  // namespace kintsugi::app
