// `train --layout auto`: the fastest layout that a search finds for the ranks at hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/run_options.h"
#include "kintsugi/search/search.h"
#include "kintsugi/simulate/cluster.h"

namespace kintsugi::app {

// Adds to `options` what the layout changes of the configuration, as --set would, and says which one it is. `config` is
// what the options were read to. UserError without [parallel] cluster, or where no layout fits.
void add_fastest_layout(config::Resolved config, RunOptions& options);

// The fastest layout of that many ranks on a cluster.
struct LayoutSearch {
  int64_t ranks = 1;
  double seconds = 60;  // after which the best so far counts
};
struct FoundLayout {
  std::vector<std::string> sets;  // what differs from `config`, as values of --set
  std::string words;
};
// Nothing if none fits.
std::optional<FoundLayout> fastest_layout(config::Resolved config, const simulate::Cluster& cluster,
                                          const LayoutSearch& options);

}  // namespace kintsugi::app
