// Attention of few queries, as in decoding: bound by the bandwidth of reading keys and values once, in place. A head's
// keys are divided into blocks of kFewKeys, which threads share; partial results are merged in order (Dao et al. 2023,
// "Flash-Decoding for long-context inference").
#pragma once

#include "kintsugi/kernels/cpu/attention_setting.h"

namespace kintsugi::kernels::cpu {

constexpr int64_t kFewQueries = 8;  // maximum per kv head
constexpr int64_t kFewKeys = 256;   // of a block

// Whether a call has so few queries, and no dropout.
bool is_few(const AttentionSetting& s);

// Size in floats of a block's partial result per head: for each query its sums of values, maximum and sum.
inline int64_t few_part(const AttentionSetting& s) {
  return s.queries() * (padded(s.head_dim) + 2);
}
inline int64_t few_blocks(const AttentionSetting& s) {
  return std::max<int64_t>((s.key_seq + kFewKeys - 1) / kFewKeys, 1);
}

void attend_few(const KernelCall& call, const AttentionSetting& s);

}  // namespace kintsugi::kernels::cpu
