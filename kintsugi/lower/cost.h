// Cost of an instruction created by a pass.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// The cost of its operation with its operands and outputs.
program::Cost cost_of(const program::Program& p, const graph::OpTable& operations, const program::Instruction& i);

}  // namespace kintsugi::lower
