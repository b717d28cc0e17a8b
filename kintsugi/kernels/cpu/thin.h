// Products with one or a few rows, as in generation: limited by the memory bandwidth for the larger operand, which is
// read once, where it is. k is summed in slices, and their sums in order, so that threads can share rows of b, which
// lie side by side, rather than columns: two cores of an AMD EPYC read 45 GB/s of columns, 60 of rows. The bits are the
// same.
#pragma once

#include <algorithm>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/cpu/gemm.h"

namespace kintsugi::kernels::cpu {

constexpr int64_t kThinRows = 8;             // of c, at most
constexpr int64_t kThinColumns = 2048;       // whose sums are made at a time
constexpr int64_t kMostThinColumns = 16384;  // of which slices are shared: rows of more columns are long enough
constexpr int64_t kThinGrain = 32;           // columns that a thread sums at least

constexpr int64_t thin_slice(int64_t k) {
  return std::max<int64_t>(128, (k + 127) / 128 * 8);
}
constexpr int64_t thin_slices(int64_t k) {
  return (k + thin_slice(k) - 1) / thin_slice(k);
}
constexpr int64_t thin_parts_of_slice(int64_t n) {
  return (n + kThinGrain - 1) / kThinGrain;
}

// The floats of scratch with which threads share rows of b; 0: they share columns.
constexpr int64_t thin_sums(int64_t m, int64_t n, int64_t k) {
  return n <= kMostThinColumns && thin_slices(k) > 1 ? thin_slices(k) * m * n : 0;
}

// At most kThinRows of c, and b row-major or its transpose.
bool is_thin(const Product& product);

// By the calling thread. Computes without the bias; adds to c if `add`.
void multiply_thin(const Product& product, bool add);

// By all threads together, where b's columns lie side by side, with the epilogue.
void multiply_thin(const Product& product, bool add, float* sums, base::ThreadTeam& team);

}  // namespace kintsugi::kernels::cpu
