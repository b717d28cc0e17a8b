// Learning rates by names of weights.
#pragma once

#include "kintsugi/config/settings.h"
#include "kintsugi/graph/graph.h"

namespace kintsugi::models {

// Sets the factor of the learning rate of each weight: that of the first of [train] rates, "PATTERN FACTOR", whose
// pattern matches it (matches_beginning()). Throws UserError for an entry of another form, and for a pattern without
// matches.
void set_rates(graph::StateTable& states, const config::Train& train);

}  // namespace kintsugi::models
