// `train --layout auto`: the fastest layout that a search finds for the ranks at hand.
#pragma once

#include "app/run_options.h"

namespace kintsugi::app {

// Adds to `options` what the layout changes of the configuration, as --set would, and says which one it is. `config` is
// what the options were read to. UserError without [parallel] cluster, or where no layout fits.
void add_fastest_layout(config::Resolved config, RunOptions& options);

}  // namespace kintsugi::app
