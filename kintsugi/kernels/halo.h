// Rows of blocks along one dim, as moved by halo_pack, halo_place and halo_add (kintsugi/program/halo.h).
#pragma once

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

// A block [above rows below], and packed rows [rows above below]; `below` in bytes. `rows`: of the block.
struct HaloRows {
  int64_t above = 1, rows = 0, below = 0;

  // Byte offset of part `a` of a row.
  int64_t in_block(int64_t row, int64_t a) const { return (a * rows + row) * below; }
  int64_t in_packed(int64_t row, int64_t a) const { return (row * above + a) * below; }
};

// Throws InternalError if a block lacks the call's dim.
HaloRows halo_rows_of(const KernelCall& call, const tensor::View& block);

// The positions that a call of halo_place writes, by what their index names: rows of x, of which there are `rows`, and
// zeros; or the rows of received, counted on from there.
struct HaloPlaces {
  int64_t rows = 0;
  bool own = true, received = true;

  bool writes(int64_t source) const { return source < rows ? own : received; }
};

// `from`: of the call's first operand.
HaloPlaces halo_places_of(const KernelCall& call, const HaloRows& from);

}  // namespace kintsugi::kernels
