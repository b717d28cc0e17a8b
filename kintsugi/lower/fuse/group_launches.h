// Device: decides which consecutive instructions are performed by one kernel launch (`Kernel::together`).
#pragma once

#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Sets Instruction::launch. In a program without planned memory, which is only timed, buffers are assumed to be
// consecutive. Instructions of a group access nothing that another of them writes, except that those before the group's
// own kernel (`Capability::follow`) write what it reads; no instruction outside the group reads what those produce.
// This holds, and the kernel accepts the group, in every slot in which the body runs and on the first and last rank of
// the stage. With KINTSUGI_LAUNCHES=each in the environment each instruction is a separate launch. No-op for the host.
void group_launches(program::Program& p, const kernels::KernelSet& kernels);

}  // namespace kintsugi::lower
