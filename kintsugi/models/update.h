// The update of a step: gradient norm and clipping, the optimizer, and skipping of updates.
#pragma once

#include "kintsugi/config/settings.h"
#include "kintsugi/graph/graph.h"
#include "kintsugi/models/optimizers.h"

namespace kintsugi::models {

// For every weight with an accumulator NAME.gradient. Adds the optimizer's states, those of its row and NAME.master if
// weights are stored in less than fp32.
graph::Graph build_update(const config::Train& train, graph::StateTable& states, const Optimizer& optimizer,
                          const graph::OpTable& operations);

// A state [] fp64, found or created.
graph::StateId number(graph::StateTable& states, const std::string& name, double start, int layer, bool saved);

}  // namespace kintsugi::models
