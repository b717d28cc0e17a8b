// Joins instructions that differ only in their operands.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// On a device, joins adjacent instructions of an operation with one output per operand (`listed`, such as sums of
// squares of gradients) into one, which is a single launch: small ones are dominated by the launch.
void join_lists(program::Program& p, const graph::OpTable& operations);

}  // namespace kintsugi::lower
