// Attention whose products are of bf16, with sums in fp32 (attention_narrow.h).
#pragma once

#include "kintsugi/kernels/cpu/attention_setting.h"

namespace kintsugi::kernels::cpu {

// o and lse of one head of one sample. Which thread, and what it made before, changes no bit.
void attend_bf16(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head, int64_t tile);

// dk and dv of a block of keys of one head, and what it adds to dq: to `parts`, for each tile of queries
// [head_dim, padded; kTileQueries], or, where that is null, to dq.
void attend_back_bf16(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head,
                      int64_t block, float* parts);

// Stores a tile of dq from such a sum.
void store_dq_bf16(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head, int64_t tile,
                   const float* sum);

}  // namespace kintsugi::kernels::cpu
