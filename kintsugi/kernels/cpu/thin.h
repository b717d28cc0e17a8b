// Matmuls with few rows, as in decoding: bound by the bandwidth of reading the larger operand once, in place. k is
// summed in slices, and their sums in order, so that threads can share contiguous rows of b rather than columns: two
// cores of an AMD EPYC read 45 GB/s by columns, 60 by rows. The bits are the same.
#pragma once

#include <algorithm>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/cpu/gemm.h"

namespace kintsugi::kernels::cpu {

constexpr int64_t kThinRows = 8;        // maximum rows of c
constexpr int64_t kThinColumns = 2048;  // columns summed at a time
constexpr int64_t kMostThinColumns =
    16384;                          // maximum columns for sharing slices: longer rows are efficient as they are
constexpr int64_t kThinGrain = 32;  // minimum columns per thread

constexpr int64_t thin_slice(int64_t k) {
  return std::max<int64_t>(128, (k + 127) / 128 * 8);
}
constexpr int64_t thin_slices(int64_t k) {
  return (k + thin_slice(k) - 1) / thin_slice(k);
}
constexpr int64_t thin_parts_of_slice(int64_t n) {
  return (n + kThinGrain - 1) / kThinGrain;
}

// Size in floats of the scratch for sharing rows of b; 0: threads share columns.
constexpr int64_t thin_sums(int64_t m, int64_t n, int64_t k) {
  return n <= kMostThinColumns && thin_slices(k) > 1 ? thin_slices(k) * m * n : 0;
}

// At most kThinRows rows of c, and b row-major or transposed.
bool is_thin(const Product& product);

// By the calling thread, without bias; accumulates into c if `add`.
void multiply_thin(const Product& product, bool add);

// By all threads, if b's columns are contiguous; includes the epilogue.
void multiply_thin(const Product& product, bool add, float* sums, base::ThreadTeam& team);

}  // namespace kintsugi::kernels::cpu
