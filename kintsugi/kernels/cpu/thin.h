// Products with one or a few rows, as in generation: limited by the memory bandwidth for the larger operand.
#pragma once

#include "kintsugi/kernels/cpu/gemm.h"

namespace kintsugi::kernels::cpu {

// At most four rows of c, and b row-major or its transpose.
bool is_thin(const Product& product);

// Computes without the bias; adds to c if `add`.
void multiply_thin(const Product& product, bool add);

}  // namespace kintsugi::kernels::cpu
