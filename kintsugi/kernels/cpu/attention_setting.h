// Shared by attention and its gradient: sizes, the iteration over queries, visibility, and scratch.
#pragma once

#include <algorithm>
#include <array>

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

// A tile has up to 64 queries (each a position and a head of the group) and up to 64 keys.
constexpr int64_t kTileQueries = 64, kTileKeys = 64;
// Key gradients are computed for this many keys at a time, and query gradients are sums over these blocks in order:
// threads can share a head, and the bits do not depend on the number of threads.
constexpr int64_t kBlockKeys = 512;
// Rows of tiles are padded to a multiple of this, which is a multiple of every CPU's vector length.
constexpr int64_t kPad = 32;

inline int64_t padded(int64_t n) {
  return (n + kPad - 1) / kPad * kPad;
}

// The range of global indices in a tile of keys. `pads`: it contains padding.
struct KeyTile {
  int32_t low, high;
  bool pads;
};

// The range of document starts in a tile of keys.
struct StartRange {
  int32_t low, high;
};

// Scratch of a thread for bf16 matmuls, in panels of bf16_unit.h.
struct NarrowScratch {
  tensor::bf16 *q, *d_o;                 // rows of a tile: [queries head_dim, padded]
  tensor::bf16 *q_panels, *do_panels;    // of b; columns are queries, k is head_dim
  tensor::bf16 *q_columns, *do_columns;  // of b; columns are head_dim, k is queries
  tensor::bf16* p_panels;                // probabilities, or score gradients: of b; columns are queries, k is keys
  tensor::bf16 *p, *dscore;              // [keys queries]
  tensor::bf16 *keys, *values, *turned;  // of a, for all keys or a block: rows are keys, or (turned) head_dim, by tiles
  float* sums_t;                         // o or dq: [head_dim queries]
  int64_t held;                          // the head whose keys are packed; -1: none
};

// Scratch of a thread. Matrices named *_t are transposed: queries are contiguous.
struct AttentionScratch {
  float *q_t, *do_t;          // [head_dim queries]
  float *score_t, *dscore_t;  // [keys queries]
  float *rows, *drows;        // q and do, or o: [queries head_dim, padded]
  float* grad;                // dq: [queries head_dim, padded]
  float *keys, *values;       // [keys head_dim, padded]
  float *top, *sum, *factor;  // [queries]
  int32_t *start, *last;      // visible keys by global index: [queries]
  int32_t* document;          // with key_starts: document start of each query, [queries]
  uint32_t *block_low, *block_high, *word;
  float *dk, *dv;  // of a block of keys: [block head_dim, padded]
  NarrowScratch narrow;
  float* few;  // few queries: a row of q or o, and the scores of a block
};

struct AttentionSetting {
  int64_t batch, seq, key_seq, kv_heads, group, head_dim;
  float scale, softcap;  // softcap 0: none
  bool causal;
  int64_t window;                       // 0: none
  const int32_t* starts = nullptr;      // [batch seq], or none
  const int32_t* key_starts = nullptr;  // [batch key_seq], or none
  // attention_at, both [batch]: the text whose keys and values a row sees, and the offset of its query positions; -1:
  // padding.
  const int32_t* text = nullptr;
  const int32_t* at = nullptr;
  double dropout;
  std::array<uint32_t, 2> random_key;
  uint64_t random_step;
  int64_t whole_keys, whole_seq, whole_kv_heads, whole_group;
  // In the workspace, shared by all threads.
  int32_t *query_place, *key_place;  // global indices: [seq], [key_seq]
  int32_t *batch_place, *kv_head_place, *group_place;
  KeyTile* key_tiles;
  StartRange* start_ranges;  // with key_starts: [batch key tile]
  float* dq_parts;           // for some heads at a time: [heads_at_once key_blocks query_tiles], a tile of queries each
  int64_t heads_at_once;
  float* few_parts;  // few queries: partial results of the blocks of all heads
  float* sinks;      // [kv_heads group]; null if there are none, or this rank lacks the first key
  AttentionScratch* threads;

  int64_t queries() const { return seq * group; }  // per kv head
  int64_t query_tiles() const { return (queries() + kTileQueries - 1) / kTileQueries; }
  int64_t num_key_tiles() const { return (key_seq + kTileKeys - 1) / kTileKeys; }
  int64_t heads() const { return batch * kv_heads; }
  int64_t key_blocks() const { return std::max<int64_t>((key_seq + kBlockKeys - 1) / kBlockKeys, 1); }
  // Element offset of row `query` of a head: q is [batch seq kv_heads group head_dim].
  int64_t row_of(int64_t b, int64_t head, int64_t query) const {
    return ((b * seq + query / group) * kv_heads + head) * group + query % group;
  }
  int64_t key_row(int64_t b, int64_t key, int64_t head) const {
    if (text) b = std::max(text[b], 0);
    return (b * key_seq + key) * kv_heads + head;
  }
  bool is_padding(int64_t b) const { return batch_place[b] < 0 || (text && (text[b] < 0 || at[b] < 0)); }
};

inline base::Range keys_of_block(const AttentionSetting& s, int64_t block) {
  return {block * kBlockKeys, std::min((block + 1) * kBlockKeys, s.key_seq)};
}
inline base::Range tiles_of_block(const AttentionSetting& s, int64_t block) {
  constexpr int64_t kTiles = kBlockKeys / kTileKeys;
  return {block * kTiles, std::min((block + 1) * kTiles, s.num_key_tiles())};
}

// Final factors of row i of a tile of queries that begins at `begin`: the factor of its sum of values, 0 if it saw no
// key, and its log-sum-exp.
struct RowEnd {
  float factor, lse;
};
RowEnd end_of_row(const AttentionSetting& s, const AttentionScratch& t, int64_t head, int64_t begin, int64_t i);

// Partitions the workspace into arrays; only measures if the scratch has no memory. `grad`: includes what the gradient
// needs.
AttentionSetting take_attention(const Operands& o, bool grad, int threads, Scratch& scratch);
// The same for `batch` samples of `seq` queries, with the other sizes from the operands.
AttentionSetting take_attention(const Operands& o, int64_t batch, int64_t seq, bool grad, int threads,
                                Scratch& scratch);

// Sets what a setting knows of its keys and heads.
void fill_keys(const KernelCall& call, AttentionSetting& s);

// The setting of a call of attention or its gradient, which have the same first operands.
AttentionSetting attention_setting(const KernelCall& call, bool grad);

// Attention with a setting; the call has the operands of AttentionIn and AttentionOut.
void attend(const KernelCall& call, const AttentionSetting& s);

}  // namespace kintsugi::kernels::cpu
