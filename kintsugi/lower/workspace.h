// What kernels need beside their operands.
#pragma once

#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Gives each instruction whose kernel asks for one a workspace: a buffer that lives as long as the instruction runs.
void add_workspaces(program::Program& p, const kernels::KernelSet& kernels, int threads);

}  // namespace kintsugi::lower
