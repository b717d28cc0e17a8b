// The layout of a run for which fewer ranks are left than it names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/run_options.h"

namespace kintsugi::app {

struct FewerRanks {
  int64_t ranks = 0;
  std::vector<std::string> sets;  // values over those of the run: "parallel.data=3"
  std::string words;              // "data 3"
};

// The layout for at most `ranks` ranks at the same global batch, `per_node` of them on a node. With [parallel] cluster,
// or where the run's own layout with a smaller data axis is not possible, it is the fastest that a search finds; else
// that one. Throws UserError if there is none for any number of ranks.
FewerRanks layout_for(const RunOptions& options, int64_t ranks, int64_t per_node);

}  // namespace kintsugi::app
