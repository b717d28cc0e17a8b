// fp64 matmuls, for runs that are compared in double precision.
#pragma once

#include <cstdint>

#include "kintsugi/base/thread_team.h"

namespace kintsugi::kernels::cpu {

// c[i, j] (+)= sum over l of a[i, l] * b[l, j], i < m, j < n, l < k. An element of a or b is at i * row + j * column,
// of c at i * c_row + j. The order of each sum depends only on k.
struct WideProduct {
  int64_t m = 0, n = 0, k = 0;
  const double* a = nullptr;
  int64_t a_row = 0, a_column = 0;
  const double* b = nullptr;
  int64_t b_row = 0, b_column = 0;
  double* c = nullptr;
  int64_t c_row = 0;
  bool accumulate = false;
};

// On the calling thread, or blocks of c on those of the team. Allocates buffers for packed blocks of a and b.
void multiply(const WideProduct& product);
void multiply(const WideProduct& product, base::ThreadTeam& team);

}  // namespace kintsugi::kernels::cpu
