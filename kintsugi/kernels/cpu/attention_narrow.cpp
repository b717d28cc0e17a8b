#include "kintsugi/kernels/cpu/attention_narrow.h"

#include <algorithm>

namespace kintsugi::kernels::cpu {

using tensor::bf16;

QueryRows query_rows(const AttentionSetting& s, int64_t b, int64_t head, int64_t tile, const bf16* from, bf16* room) {
  const int64_t begin = tile * kTileQueries, count = std::min(kTileQueries, s.queries() - begin);
  const auto row = [&](int64_t i) { return from + s.row_of(b, head, begin + i) * s.head_dim; };
  if (s.group == 1) return {row(0), s.kv_heads * s.head_dim, count, s.head_dim};
  for (int64_t i = 0; i < count; ++i) std::copy_n(row(i), s.head_dim, room + i * s.head_dim);
  return {room, s.head_dim, count, s.head_dim};
}

void pack_queries(const Bf16Unit& unit, const QueryRows& rows, bf16* to) {
  for (int64_t i = 0; i < rows.count; i += kTile, to += kTile * padded(rows.head_dim))
    unit.pack_b({.from = rows.from + i * rows.stride,
                 .stride = rows.stride,
                 .k_stride = 1,
                 .count = std::min(kTile, rows.count - i),
                 .k = rows.head_dim},
                to);
}

void pack_query_rows(const Bf16Unit& unit, const QueryRows& rows, bf16* to) {
  for (int64_t d = 0; d < rows.head_dim; d += kTile, to += kTilePanel)
    unit.pack_b({.from = rows.from + d,
                 .stride = 1,
                 .k_stride = rows.stride,
                 .count = std::min(kTile, rows.head_dim - d),
                 .k = rows.count},
                to);
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
      int64_t d = 0;
      for (; d + kTile <= s.head_dim; d += kTile) std::copy_n(rows + d * kTile + r * kStep, kTile, row + d);
      std::copy_n(rows + d * kTile + r * kStep, s.head_dim - d, row + d);
    }
  }
}

}  // namespace kintsugi::kernels::cpu
