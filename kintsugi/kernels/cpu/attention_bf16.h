// Attention with bf16 matmuls accumulated in fp32 (attention_narrow.h).
#pragma once

#include "kintsugi/kernels/cpu/attention_setting.h"

namespace kintsugi::kernels::cpu {

// Computes o and lse of one head of one sample. Bit-identical on any thread, with any prior state of its scratch.
void attend_bf16(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head, int64_t tile);

// Computes dk and dv of a block of keys of one head, and its contribution to dq: to `parts`, [head_dim, padded;
// kTileQueries] per tile of queries, or, if null, to dq.
void attend_back_bf16(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head,
                      int64_t block, float* parts);

// Stores a tile of dq from such a sum.
void store_dq_bf16(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head, int64_t tile,
                   const float* sum);

}  // namespace kintsugi::kernels::cpu
