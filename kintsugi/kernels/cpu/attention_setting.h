// Shared by attention and its gradient: sizes, the iteration over queries, visibility, and scratch.
#pragma once

#include <algorithm>
#include <array>

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

// A tile is up to 64 queries (a position and a head of the group each) against up to 64 keys.
constexpr int64_t kTileQueries = 64, kTileKeys = 64;
// Gradients of keys are made for this many at a time, and those of queries are sums over these blocks in their order:
// threads share a head, and no bit depends on how many there are.
constexpr int64_t kBlockKeys = 512;
// Rows of tiles are padded to a multiple of this, which the vector length of every processor divides.
constexpr int64_t kPad = 32;

inline int64_t padded(int64_t n) {
  return (n + kPad - 1) / kPad * kPad;
}

// The range of global indices in a tile of keys. `pads`: some of the tile are padding.
struct KeyTile {
  int32_t low, high;
  bool pads;
};

// The range of the starts of a tile of keys.
struct StartRange {
  int32_t low, high;
};

// What one thread has for products of bf16, in panels of bf16_unit.h.
struct NarrowScratch {
  tensor::bf16 *q, *d_o;                 // room for rows of a tile: [queries head_dim, padded]
  tensor::bf16 *q_panels, *do_panels;    // of b, whose columns are queries and k is head_dim
  tensor::bf16 *q_columns, *do_columns;  // of b, whose columns are head_dim and k is queries
  tensor::bf16* p_panels;                // probabilities, or gradients of scores: of b, columns queries, k keys
  tensor::bf16 *p, *dscore;              // [keys queries]
  tensor::bf16 *keys, *values, *turned;  // of a, for all keys or a block: rows keys, or (turned) head_dim, by tiles
  float* sums_t;                         // o or dq: [head_dim queries]
  int64_t held;                          // the head whose keys are packed; -1: none
};

// Scratch of one thread. Matrices named *_t are transposed: queries are neighbours.
struct AttentionScratch {
  float *q_t, *do_t;          // [head_dim queries]
  float *score_t, *dscore_t;  // [keys queries]
  float *rows, *drows;        // q and do, or o: [queries head_dim, padded]
  float* grad;                // dq: [queries head_dim, padded]
  float *keys, *values;       // [keys head_dim, padded]
  float *top, *sum, *factor;  // [queries]
  int32_t *start, *last;      // the keys that a query may see, by global index: [queries]
  int32_t* document;          // with key_starts: the start of a query as it is given, [queries]
  uint32_t *block_low, *block_high, *word;
  float *dk, *dv;  // of a block of keys: [block head_dim, padded]
  NarrowScratch narrow;
  float* few;  // where there are few queries: a row of q or o, and the scores of a block
};

struct AttentionSetting {
  int64_t batch, seq, key_seq, kv_heads, group, head_dim;
  float scale, softcap;  // softcap 0: none
  bool causal;
  int64_t window;                       // 0: none
  const int32_t* starts = nullptr;      // [batch seq], or none
  const int32_t* key_starts = nullptr;  // [batch key_seq], or none
  // Of attention_at, both [batch]: whose keys and values a row sees, and what is added to its query places; -1: padding.
  const int32_t* text = nullptr;
  const int32_t* at = nullptr;
  double dropout;
  std::array<uint32_t, 2> random_key;
  uint64_t random_step;
  int64_t whole_keys, whole_seq, whole_kv_heads, whole_group;
  // In the workspace, for all threads.
  int32_t *query_place, *key_place;  // global indices: [seq], [key_seq]
  int32_t *batch_place, *kv_head_place, *group_place;
  KeyTile* key_tiles;
  StartRange* start_ranges;  // with key_starts: [batch key tile]
  float* dq_parts;           // of some heads at a time: [heads_at_once key_blocks query_tiles], a tile of queries each
  int64_t heads_at_once;
  float* few_parts;  // where there are few queries: what the blocks of all heads find
  float* sinks;      // [kv_heads group]; null if there are none, or the first key of all is not here
  AttentionScratch* threads;

  int64_t queries() const { return seq * group; }  // of one head of keys
  int64_t query_tiles() const { return (queries() + kTileQueries - 1) / kTileQueries; }
  int64_t num_key_tiles() const { return (key_seq + kTileKeys - 1) / kTileKeys; }
  int64_t heads() const { return batch * kv_heads; }
  int64_t key_blocks() const { return std::max<int64_t>((key_seq + kBlockKeys - 1) / kBlockKeys, 1); }
  // The elements before row `query` of a head: q is [batch seq kv_heads group head_dim].
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

// How row i of a tile of queries that begins at `begin` ends: what its sum of values is multiplied by, 0 if it saw no
// key, and its log-sum-exp.
struct RowEnd {
  float factor, lse;
};
RowEnd end_of_row(const AttentionSetting& s, const AttentionScratch& t, int64_t head, int64_t begin, int64_t i);

// Cuts the workspace into arrays; only measures if the scratch has no memory. `grad`: what the gradient needs.
AttentionSetting take_attention(const Operands& o, bool grad, int threads, Scratch& scratch);
// The same of `batch` samples of `seq` queries, by the other sizes of the operands.
AttentionSetting take_attention(const Operands& o, int64_t batch, int64_t seq, bool grad, int threads,
                                Scratch& scratch);

// Fills what a setting knows of its keys and heads.
void fill_keys(const KernelCall& call, AttentionSetting& s);

// Fills the setting of a call of attention or of its gradient, whose first operands are the same.
AttentionSetting attention_setting(const KernelCall& call, bool grad);

// Attention with a setting; of the call, the operands of AttentionIn and AttentionOut.
void attend(const KernelCall& call, const AttentionSetting& s);

}  // namespace kintsugi::kernels::cpu
