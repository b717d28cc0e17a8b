// bf16 matmuls of attention on a matrix unit of the CPU: operands in panels (bf16_unit.h), scores transposed with
// queries as columns, so that softmax runs along vectors and probabilities are packed by pairs of keys as they are
// computed.
#pragma once

#include "kintsugi/kernels/cpu/attention_setting.h"
#include "kintsugi/kernels/cpu/bf16_unit.h"

namespace kintsugi::kernels::cpu {

static_assert(kTileQueries == 2 * kTile && kTileKeys == 2 * kTile && kPad == kTile && kTile == kStep);

constexpr int64_t kSquare = kTile * kStep;         // elements per step of a panel
constexpr int64_t kTilePanel = kTileKeys * kTile;  // elements of a panel whose k are the keys or queries of a tile

inline int64_t in_tiles(int64_t n) {
  return (n + kTile - 1) / kTile * kTile;
}

// Rows of a tile of q, or of a similar operand: `count` rows of head_dim elements, `stride` apart.
struct QueryRows {
  const tensor::bf16* from = nullptr;
  int64_t stride = 0, count = 0, head_dim = 0;
};
// In place if they are equidistant, else copied contiguously to `room`, [kTileQueries head_dim].
QueryRows query_rows(const AttentionSetting& s, int64_t b, int64_t head, int64_t tile, const tensor::bf16* from,
                     tensor::bf16* room);
// As columns of b, with head_dim as k: [2 head_dim kTile].
void pack_queries(const Bf16Unit& unit, const QueryRows& rows, tensor::bf16* to);
// As rows of b, with queries as k: [head_dim / kTile][kTilePanel].
void pack_query_rows(const Bf16Unit& unit, const QueryRows& rows, tensor::bf16* to);

// Tiles of keys or values as rows of a, with head_dim as k: per tile [2 head_dim kTile].
void pack_keys(const Bf16Unit& unit, const AttentionSetting& s, int64_t b, int64_t head, base::Range tiles,
               const tensor::bf16* from, tensor::bf16* to);
// Transposed: rows are head_dim, with the keys of the tile as k: per tile [head_dim / kTile][kTilePanel].
void turn_keys(const Bf16Unit& unit, const AttentionSetting& s, int64_t b, int64_t head, base::Range tiles,
               const tensor::bf16* from, tensor::bf16* to);

// Tiles of c: rows from panel to panel of a, columns from panel to panel of b.
struct PanelProduct {
  int64_t rows = 0, columns = 0;  // rounded up to tiles
  int64_t a_panel = 0, b_panel = 0;
  Bf16Tile first = {};
};
void multiply_panels(const Bf16Unit& unit, const PanelProduct& p);

// Stores rows of a tile of o, or of a similar operand, from their transpose, [head_dim, padded; kTileQueries]. `rows`
// has room for the tile.
void store_queries(const Bf16Unit& unit, const AttentionSetting& s, int64_t b, int64_t head, int64_t tile,
                   const tensor::bf16* transposed, tensor::bf16* rows, tensor::bf16* to);

}  // namespace kintsugi::kernels::cpu
