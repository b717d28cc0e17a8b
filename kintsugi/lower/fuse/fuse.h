// Fuses instructions to reduce memory traffic. Runs after partition, and across a layer boundary only if the result is
// bit-identical to separate instructions, so that a cut between layers changes no bits.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// - contract, then an addition of a bias: contract with a bias.
// - contract, then an activation of its result, or the gradient of one: contract with an epilogue, if the kernel
//   supports it. The activation's input becomes a second output if anything else reads it.
// - if kernels sum in place, a sum of values of which all but the first are only used here: their producers accumulate
//   into the first.
// - an output that is only accumulated into a state: the producing operation accumulates into the state.
// - an output that is only assigned to a state: written there directly.
// - the sum over rows of what a norm gradient wrote last, as for a bias gradient: computed by that kernel, if it can.
void fuse(program::Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels);

}  // namespace kintsugi::lower
