// Memory that kernels need beside their operands.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Gives each instruction whose kernel needs one a workspace: a buffer that is live while the instruction runs.
// InternalError if a kernel does not name the operands and outputs of its operation, or an instruction has others.
void add_workspaces(program::Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels,
                    int threads);

}  // namespace kintsugi::lower
