#include "kintsugi/kernels/cpu/attention_narrow.h"

#include <algorithm>

namespace kintsugi::kernels::cpu {

using tensor::bf16;

void gather_queries(const AttentionSetting& s, int64_t b, int64_t head, int64_t tile, const bf16* from, bf16* rows) {
  const int64_t wide = padded(s.head_dim), begin = tile * kTileQueries;
  const int64_t count = std::min(kTileQueries, s.queries() - begin);
  for (int64_t i = 0; i < count; ++i, rows += wide) {
    std::copy_n(from + s.row_of(b, head, begin + i) * s.head_dim, s.head_dim, rows);
    std::fill(rows + s.head_dim, rows + wide, bf16());
  }
  std::fill_n(rows, (kTileQueries - count) * wide, bf16());
}

void pack_queries(const Bf16Unit& unit, int64_t head_dim, const bf16* rows, bf16* to) {
  const int64_t wide = padded(head_dim);
  for (int64_t i = 0; i < kTileQueries; i += kTile)
    unit.pack_b({.from = rows + i * wide, .stride = wide, .k_stride = 1, .count = kTile, .k = wide}, to + i * wide);
}

void pack_query_rows(const Bf16Unit& unit, int64_t head_dim, const bf16* rows, bf16* to) {
  const int64_t wide = padded(head_dim);
  for (int64_t d = 0; d < wide; d += kTile, to += kTilePanel)
    unit.pack_b({.from = rows + d, .stride = 1, .k_stride = wide, .count = kTile, .k = kTileQueries}, to);
}

void pack_keys(const Bf16Unit& unit, const AttentionSetting& s, int64_t b, int64_t head, base::Range tiles,
               const bf16* from, bf16* to) {
  const int64_t row = s.kv_heads * s.head_dim, end = std::min(tiles.end * kTileKeys, s.key_seq);
  for (int64_t i = tiles.begin * kTileKeys; i < end; i += kTile, to += kTile * padded(s.head_dim))
    unit.pack_a({.from = from + s.key_row(b, i, head) * s.head_dim,
                 .stride = row,
                 .k_stride = 1,
                 .count = std::min(kTile, end - i),
                 .k = s.head_dim},
                to);
}

void turn_keys(const Bf16Unit& unit, const AttentionSetting& s, int64_t b, int64_t head, base::Range tiles,
               const bf16* from, bf16* to) {
  const int64_t row = s.kv_heads * s.head_dim;
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const int64_t begin = tile * kTileKeys, keys = std::min(kTileKeys, s.key_seq - begin);
    for (int64_t d = 0; d < s.head_dim; d += kTile, to += kTilePanel)
      unit.pack_a({.from = from + s.key_row(b, begin, head) * s.head_dim + d,
                   .stride = 1,
                   .k_stride = row,
                   .count = std::min(kTile, s.head_dim - d),
                   .k = keys},
                  to);
  }
}

void multiply_panels(const Bf16Unit& unit, const PanelProduct& p) {
  Bf16Tile tile = p.first;
  for (int64_t i = 0; i < p.rows; i += kTile)
    for (int64_t j = 0; j < p.columns; j += kTile) {
      tile.a = p.first.a + i / kTile * p.a_panel;
      tile.b = p.first.b + j / kTile * p.b_panel;
      tile.c = p.first.c + i * p.first.c_row + j;
      unit.multiply(tile);
    }
}

void store_queries(const Bf16Unit& unit, const AttentionSetting& s, int64_t b, int64_t head, int64_t tile,
                   const bf16* transposed, bf16* rows, bf16* to) {
  const int64_t begin = tile * kTileQueries, count = std::min(kTileQueries, s.queries() - begin);
  for (int64_t i = 0; i < count; i += kTile) {
    const int64_t some = std::min(kTile, count - i);
    unit.pack_a({.from = transposed + i, .stride = 1, .k_stride = kTileQueries, .count = some, .k = padded(s.head_dim)},
                rows);
    for (int64_t r = 0; r < some; ++r) {
      bf16* row = to + s.row_of(b, head, begin + i + r) * s.head_dim;
      for (int64_t d = 0; d < s.head_dim; d += kTile)
        std::copy_n(rows + d * kTile + r * kStep, std::min(kTile, s.head_dim - d), row + d);
    }
  }
}

}  // namespace kintsugi::kernels::cpu
