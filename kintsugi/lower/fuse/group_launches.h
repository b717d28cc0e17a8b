// On a device: which consecutive instructions one kernel launch performs (`Kernel::together`).
#pragma once

#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Sets Instruction::launch. In a program whose memory is not planned, which is only timed, buffers are taken to be one
// after another; the others have their offsets. Instructions of a group touch nothing that
// another of them writes, except that those before the group's own kernel (`Kernel::begins_with`) write what it reads;
// no instruction outside the group reads what those make. This holds, and the kernel accepts the group, in every slot
// in which the body runs and on the first and the last rank of the stage. With KINTSUGI_LAUNCHES=each in the
// environment each instruction is a launch of its own. Does nothing for the host.
void group_launches(program::Program& p, const kernels::KernelSet& kernels);

}  // namespace kintsugi::lower
