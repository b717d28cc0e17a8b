// bf16 matmuls accumulated in fp32, on a CPU unit (bf16_unit.h). The bits of an element depend only on the unit and on
// its row and column, not on threads, blocks or caches. Matmuls with few rows (thin_bf16.h) are accumulated in fp32, in
// another order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/cpu/epilogue.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels::cpu {

// Element (i, j) is at i * row + j * column, in elements; fp32 or bf16.
struct Bf16Bias {
  const std::byte* data = nullptr;  // null: none
  tensor::DType dtype = tensor::DType::f32;
  int64_t row = 0, column = 0;
};

// c[i, j] = sum over l of a[i, l] * b[l, j], plus bias[i, j], plus c[i, j] if `accumulate`; in that order, in fp32,
// then rounded; if c is fp32, 4,096 of l at a time. Then the epilogue, whose product() is c. One of a's strides is 1
// (or its dim has size 1), same for b; c's column stride is 1.
struct Bf16Product {
  int64_t m = 0, n = 0, k = 0;
  const tensor::bf16* a = nullptr;
  int64_t a_row = 0, a_column = 0;
  const tensor::bf16* b = nullptr;
  int64_t b_row = 0, b_column = 0;
  std::byte* c = nullptr;
  tensor::DType c_dtype = tensor::DType::f32;  // or bf16
  int64_t c_row = 0;
  bool accumulate = false;
  Bf16Bias bias = {};
  Epilogue epilogue = {};
};

// Packed panels of a matmul, and sums of one with few rows. Sizes are the same on every machine.
struct Bf16Scratch {
  tensor::bf16* a = nullptr;
  int64_t a_size = 0;  // elements per matmul
  tensor::bf16* threads = nullptr;
  int64_t thread_size = 0;  // elements per thread
  float* sums = nullptr;
  int64_t sums_size = 0;  // elements, over all threads
};

// Sufficient for each of these matmuls, and for any that is no larger and packs no more of a: one at a time by all
// threads, or one per thread (`alone`). Depends only on sizes, strides and c's type; a is packed unless its column
// stride is 1 and k a multiple of 32.
Bf16Scratch take_bf16_scratch(std::initializer_list<Bf16Product> products, int threads, bool alone, Scratch& scratch);

// By all threads of the team.
void multiply(const Bf16Product& p, const Bf16Scratch& scratch, base::ThreadTeam& team);

// By the calling thread.
void multiply_alone(const Bf16Product& p, const Bf16Scratch& scratch, int thread);

}  // namespace kintsugi::kernels::cpu
