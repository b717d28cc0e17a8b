// Every buffer gets a fixed offset. Nothing is allocated after this.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// States stand one after another in the state region, in the order of their kinds and layers. The buffers of a list of
// calls share the arena: each lives from its first to its last use, an output takes the memory of an input that dies
// where the operation's row allows it, and the rest is packed, largest first, each at the lowest offset that is free
// while it lives. The lists of calls share one arena.
void plan_memory(program::Program& p, const graph::OpTable& operations);

}  // namespace kintsugi::lower
