// fp32 matmuls through oneDNN, on the calling thread, and with few rows (thin.h).
#pragma once

#include <cstdint>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/cpu/epilogue.h"

namespace kintsugi::kernels::cpu {

// c[i, j] (+)= sum over l of a[i, l] * b[l, j], plus bias[i, j]. i < m, j < n, l < k; an element of a matrix is at i *
// row + j * column. Then the epilogue, whose product() is c. One of a's strides is 1 (or its dim has size 1), same for
// b; c's column stride is 1.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int64_t a_row = 0, a_column = 0;
  const float* b = nullptr;
  int64_t b_row = 0, b_column = 0;
  float* c = nullptr;
  int64_t c_row = 0;
  bool accumulate = false;
  const float* bias = nullptr;  // null: none. Strides may be 0
  int64_t bias_row = 0, bias_column = 0;
  Epilogue epilogue = {};
};

void multiply(const Product& product);

// One thread's share, a block of c. All shares together form the product.
void multiply_share(const Product& product, int thread, int threads);

// Size in floats of the scratch with which all threads together multiply faster than by shares, with the same bits; 0:
// they do not. Depends only on sizes and strides.
int64_t together_scratch(const Product& product, int threads);
void multiply_together(const Product& product, float* scratch, base::ThreadTeam& team);

}  // namespace kintsugi::kernels::cpu
