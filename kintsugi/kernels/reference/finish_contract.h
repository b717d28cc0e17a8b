// The end of a matmul in fp64, shared with kernels that compute its sums in another way.
#pragma once

#include <vector>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels::reference {

// Adds the bias and the operand `added` to the product, in the order of the output, applies the epilogue, and stores
// the results.
void finish_contract(const KernelCall& call, std::vector<double> product);

}  // namespace kintsugi::kernels::reference
