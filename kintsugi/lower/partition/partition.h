// Turns graphs and a plan into what each rank computes and sends: the only place that inserts communication. All ranks
// of a mesh run one program; differences follow from a rank's place in the mesh.
#pragma once

#include "kintsugi/lower/lower.h"

namespace kintsugi::lower {

// Fills buffers, states and bodies: "forward", "backward", "reduce" (of accumulators, once a step), "update",
// "evaluate", "prefill", "decode". Offsets and calls come later. UserError where an axis of the mesh splits nothing.
void partition(program::Program& p, const Source& source, const plan::Plan& plan);

}  // namespace kintsugi::lower
