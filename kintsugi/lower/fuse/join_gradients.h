// Products that make gradients of several weights become one.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// What `join_columns` does last. The products of a value x with the columns of one value, as those that make the
// gradients of the weights of query, key and value, become one product with the whole of it, and the sums of its rows,
// as gradients of biases are, one sum, where the first product stands, or the first sum if that is later.
// `split_columns` then stores what each has made, or adds it. All columns must be among them, in one body and one
// layer, and between that place and its own nothing may touch what one of them makes. They are not rounded twice: the
// product is in fp32 where gradients are narrower.
//
// What it makes is written and read once more. So it is done only where each product alone leaves more than half of a
// large device idle: it has fewer tiles of 128 x 256 than half of the processors.
void join_gradients(program::Program& p, const graph::OpTable& operations, const kernels::KernelSet& kernels);

}  // namespace kintsugi::lower
