// Converts graphs and a plan to what each rank computes and communicates: the only place that inserts communication.
// All ranks of a mesh run one program; differences follow from a rank's position in the mesh.
#pragma once

#include "kintsugi/lower/lower.h"

namespace kintsugi::lower {

// Creates buffers, states and bodies: "forward", "backward", "reduce" (of accumulators, once per step), "update",
// "evaluate", "prefill", "decode". Offsets and calls are assigned later. Throws UserError if an axis of the mesh splits
// nothing.
void partition(program::Program& p, const Source& source, const plan::Plan& plan);

}  // namespace kintsugi::lower
