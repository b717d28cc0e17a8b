// bf16 matmuls with few rows, as those of fp32 (thin.h).
#pragma once

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/cpu/gemm_bf16.h"
#include "kintsugi/kernels/cpu/thin.h"

namespace kintsugi::kernels::cpu {

bool is_thin(const Bf16Product& p);

// Scratch in floats per thread for any thin matmul with this k.
int64_t thin_scratch(int64_t k);
float* thin_scratch_of(const Bf16Scratch& scratch, int thread);

// Size of scratch.sums in floats for sharing rows of b; 0: threads share columns.
int64_t thin_sums(const Bf16Product& p);

// Columns of c, by the calling thread.
void multiply_thin(const Bf16Product& p, base::Range columns, float* scratch);

// By all threads, with the same bits. They also share columns if the scratch was sized for another matmul and its sums
// are too small.
void multiply_thin(const Bf16Product& p, const Bf16Scratch& scratch, base::ThreadTeam& team);

}  // namespace kintsugi::kernels::cpu
