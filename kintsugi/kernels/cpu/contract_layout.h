// Maps a contraction of named dims to matmuls, if possible.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

constexpr size_t kMaxBatchDims = 6;

// Dims in a, b and y: batch dims. Strides are in elements.
struct BatchDim {
  int64_t size = 1, a = 0, b = 0, y = 0, bias = 0;
};

// y[m, n] = a[m, k] * b[k, n], for each point of the batch dims. y's column stride is 1.
struct ContractLayout {
  bool swapped = false;  // a is the operand b
  int64_t m = 1, n = 1, k = 1;
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0, y_row = 0;
  int64_t bias_row = 0, bias_column = 0;
  std::array<BatchDim, kMaxBatchDims> batch = {};
  size_t num_batch = 0;

  int64_t products() const;
  BatchDim offsets(int64_t point) const;  // of the operands of one product; its size is unused
};

// Nothing if the dims of a group are not contiguous in one of the operands. Ignores dims of size 1. Does not allocate.
std::optional<ContractLayout> contract_layout(const Operands& o);

}  // namespace kintsugi::kernels::cpu
