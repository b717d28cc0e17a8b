// Products that are only added up become one.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// On a device: values that one instruction makes (OpRow::of_columns, as the gradients of query, key and value), each
// of which is multiplied by a weight, and what comes of it added up. They are made side by side, as columns of one
// value, the weights are put side by side, and one product gives the sum, which is not written and read again for each
// term; products of other values with them, and sums of their rows, in any body, take their columns. Runs after `fuse`,
// whose sums in place it looks for, and within a layer; not where the weights have as many bytes as that saves.
void join_columns(program::Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels);

}  // namespace kintsugi::lower
