// Joins matmuls that compute gradients of several weights.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// The last step of `join_columns`. The matmuls of a value x with the columns of one value, as those for the weight
// gradients of query, key and value, become one matmul with the whole of it, and the sums of its rows, as for bias
// gradients, one sum, at the position of the first matmul, or the first sum if that is later. `split_columns` then
// stores or accumulates each result. All columns must be covered, in one body and one layer, and between that position
// and its own nothing may touch what one of them produces. There is no double rounding: the matmul is in fp32 if
// gradients are narrower.
//
// The result is written and read once more. So this is done only if each separate matmul would leave more than half of
// a large device idle: it has fewer tiles of 128 x 256 than half of the multiprocessors.
void join_gradients(program::Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels);

}  // namespace kintsugi::lower
