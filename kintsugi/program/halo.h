// Halo exchange: which rows of one dim the ranks of a group exchange to get from its normal split to a split with halo
// (mesh::Halo), or, where blocks with halo are partial sums, back to the normal split.
//
// A row is all elements of a block at one position of the dim. Rows to send are packed [halo ...]: rows first, those
// for the rank at the first place of the group first, each rank's in the order of their positions. Received rows lie
// alike. A program is shared by the ranks of a stage, so packed buffers have the size of the largest rank.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/instruction.h"
#include "kintsugi/program/program.h"
#include "kintsugi/tensor/index.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::program {

struct HaloMessage {
  int place = 0;                // of the other rank in the group
  int64_t first = 0, rows = 0;  // in the packed buffer

  bool operator==(const HaloMessage&) const = default;
};

// What one rank exchanges.
struct HaloRows {
  std::vector<HaloMessage> sent, received;
  tensor::DimIndex packed;  // the position in its block of each row that it sends
  // To a split with halo: of each position of the block with halo, which row of [block, received] it is, -1: zero.
  // Back: of each row of [block with halo, received], to which position of the block it is added, -1: none.
  tensor::DimIndex placed;
};

// `cuts` has a halo.
HaloRows halo_rows(const mesh::Mesh& mesh, const Cuts& cuts, int rank);

// The largest number of rows that a rank sends, and receives; and of messages, of both kinds.
struct HaloSizes {
  int64_t sent = 0, received = 0, messages = 0;
};
inline constexpr int64_t kMostHaloMessages = 64;  // of a rank in one exchange
HaloSizes halo_sizes(const mesh::Mesh& mesh, const Cuts& cuts);

// Whether every rank's block with halo is its block in the normal split: nothing to do.
bool is_plain(const mesh::Mesh& mesh, const Cuts& cuts);

// Whether an instruction packs rows for an exchange.
bool packs_halo(const Program& program, const Instruction& instruction);

// Packed rows of a block: [halo, the block's other dims].
tensor::Shape packed_shape(const tensor::Shape& block, std::string_view dim, int64_t rows);

}  // namespace kintsugi::program
