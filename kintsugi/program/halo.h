// Halo exchange: the rows of a dim that the ranks of a group exchange to convert from its normal split to a split with
// halo (mesh::Halo), or, if blocks with halo are partial sums, back to the normal split.
//
// A row is all elements of a block at one position of the dim. Rows to send are packed as [halo ...], grouped by
// destination in group order, each destination's rows in the order of their positions. Received rows have the same
// layout. The ranks of a stage share a program, so packed buffers have the size of the largest rank.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/instruction.h"
#include "kintsugi/program/program.h"
#include "kintsugi/tensor/index.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::program {

struct HaloMessage {
  int place = 0;                // of the peer, in the group
  int64_t first = 0, rows = 0;  // in the packed buffer

  bool operator==(const HaloMessage&) const = default;
};

// The messages of one rank.
struct HaloRows {
  std::vector<HaloMessage> sent, received;
  tensor::DimIndex packed;  // [row sent]: its position in the block
  // To a split with halo: [position in the block with halo] the row of [block, received] to copy, -1: zero. Back: [row
  // of [block with halo, received]] the position of the block to add it to, -1: none.
  tensor::DimIndex placed;
};

// `cuts` must have a halo.
HaloRows halo_rows(const mesh::Mesh& mesh, const Cuts& cuts, int rank);

// Maxima over ranks of the rows sent, the rows received, and the messages of either kind.
struct HaloSizes {
  int64_t sent = 0, received = 0, messages = 0;
};
inline constexpr int64_t kMostHaloMessages = 64;  // per rank and exchange
HaloSizes halo_sizes(const mesh::Mesh& mesh, const Cuts& cuts);

// Whether every rank's block with halo equals its block in the normal split, so that no exchange is needed.
bool is_plain(const mesh::Mesh& mesh, const Cuts& cuts);

// Whether an instruction packs rows for an exchange.
bool packs_halo(const Program& program, const Instruction& instruction);

// Shape of the packed rows of a block: [halo, the block's other dims].
tensor::Shape packed_shape(const tensor::Shape& block, std::string_view dim, int64_t rows);

}  // namespace kintsugi::program
