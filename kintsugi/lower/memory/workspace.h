// Workspaces of kernels.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Adds a workspace, a buffer that is live during the instruction, to each instruction whose kernel needs one. Throws
// InternalError if the operands and outputs of a kernel differ from those of its operation, or of an instruction.
void add_workspaces(program::Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels,
                    int threads);

}  // namespace kintsugi::lower
