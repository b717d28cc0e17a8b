// Joins instructions so that fewer bytes are moved. Runs after partition, and across a layer boundary only where that
// has the bits of what is joined, so that a cut between layers changes none.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// - contract, then add of a bias: contract with a bias.
// - contract, then an activation of its result, or the gradient of one: contract with an epilogue, where the product's
//   kernel has it. What the activation is of becomes a second output if anything else reads it.
// - where kernels sum in place, a sum of values of which all but the first are only added up here: what makes them adds
// to the first.
// - an output that is only accumulated into a state is added to the state by the operation that makes it.
// - an output that is only assigned to a state is written there.
// - the sum over rows of what the gradient of a norm wrote last, as of the gradient of a bias: made by it, where its
//   kernel can.
void fuse(program::Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels);

}  // namespace kintsugi::lower
