// Products of bf16 with few rows, as in generation: limited by the bandwidth for b, which is read once, where it is.
#pragma once

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/cpu/gemm_bf16.h"

namespace kintsugi::kernels::cpu {

constexpr int64_t kThinRows = 8;        // of c, at most
constexpr int64_t kThinColumns = 2048;  // whose sums are made at a time

bool is_thin(const Bf16Product& p);

// The floats of scratch that any thin product with this k needs.
int64_t thin_scratch(int64_t k);

// Columns of c, by the calling thread.
void multiply_thin(const Bf16Product& p, base::Range columns, float* scratch);

}  // namespace kintsugi::kernels::cpu
