// Graphs and a plan become what one rank computes and sends: the only place that inserts communication.
#pragma once

#include "kintsugi/lower/lower.h"

namespace kintsugi::lower {

// Fills buffers, states and bodies: "forward", "backward", "update", "evaluate", "prefill", "decode". Offsets and calls
// come later. For a mesh of one rank every value is whole and nothing is sent; a larger mesh is a UserError.
void partition(program::Program& p, const Source& source, const plan::Plan& plan);

}  // namespace kintsugi::lower
