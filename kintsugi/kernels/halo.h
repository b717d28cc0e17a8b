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

}  // namespace kintsugi::kernels
