// The two parts of `offload`.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// `events`: the first free one.
void offload_optimizer(program::Program& p, const graph::OpTable& operations, int& events);
void offload_activations(program::Program& p, int& events);

}  // namespace kintsugi::lower
