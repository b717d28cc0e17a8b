// Joins matmuls whose results are only summed.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Device (Rewrite::columns): values of one instruction, such as the gradients of query, key and value, each multiplied
// by a weight, with the products summed. They become adjacent columns of one value, the weights are copied to adjacent
// columns, and one matmul computes the sum, which is then not written and read again per term. Other matmuls of these
// values, and sums of their rows, in any body, read their columns. Runs after `fuse`, whose in-place sums it matches,
// and within a layer; skipped if the weights have as many bytes as it saves.
void join_columns(program::Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels);

}  // namespace kintsugi::lower
