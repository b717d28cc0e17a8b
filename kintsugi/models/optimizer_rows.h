// What follows from the row of an optimizer.
#pragma once

#include "kintsugi/models/optimizers.h"

namespace kintsugi::models {

// The row that updates the weights that this one does not, its `otherwise`; itself if it has none.
const Optimizer& fallback_of(const Optimizer& optimizer);

// Whether the state is stored in 8-bit codes: there is also a state NAME_scale. Such optimizers update weights with
// decay alone.
bool has_codes(const Optimizer& optimizer);
bool has_codes(const Optimizer& optimizer, const OptimizerState& state);
// Whether it is such a NAME_scale, with one element for each block of the weight (tensor/state_blocks.h).
bool is_scale(const OptimizerState& state);

}  // namespace kintsugi::models
