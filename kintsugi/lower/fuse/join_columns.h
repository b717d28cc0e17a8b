// Products that are only added up become one.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// On a device (Rewrite::columns): values of one instruction, as the gradients of query, key and value, each of which is
// multiplied by a weight, with the products added up. They become adjacent columns of one value, the weights are copied
// into adjacent columns, and one product gives the sum, which is then not written and read again for each term. Other
// products with these values, and sums of their rows, in any body, take their columns. Runs after `fuse`, whose sums in
// place it looks for, and within a layer; not where the weights have as many bytes as that saves.
void join_columns(program::Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels);

}  // namespace kintsugi::lower
