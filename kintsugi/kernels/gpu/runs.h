// Runs of local elements that are contiguous in the whole, for kernels whose random numbers depend on positions there.
#pragma once

#include <span>

#include "kintsugi/kernels/gpu/strides.h"

namespace kintsugi::KINTSUGI_GPU {

// Runs of equal length, and where each begins in the whole.
struct Runs {
  Divisor pieces;    // per run
  int outer = 0;     // number of dims outside the runs
  int64_t base = 0;  // offset added to the position of every piece
  Divisor size[kMostDims];
  LocalIndex index[kMostDims];
  int64_t radix[kMostDims] = {};  // stride of the dim in the whole

  // Position in the whole of a piece of n elements, or -1 at padding.
  __device__ __forceinline__ int64_t place(int64_t piece, int n) const {
    int64_t run = pieces.quotient(piece), position = base + (piece - run * pieces.by) * n;
    bool inside = true;
    for (int d = outer - 1; d >= 0; --d) {
      const int64_t above = size[d].quotient(run), global = index[d][run - above * size[d].by];
      inside = inside && global >= 0;
      position += global * radix[d];
      run = above;
    }
    return inside ? position : -1;
  }
};

// The innermost dims form one run, as long as all but the outermost of them are whole. Returns false if runs cannot be
// divided into pieces of n elements.
inline bool lay_runs(std::string_view kind, std::span<const tensor::DimIndex> dims, int n, Runs& runs) {
  int64_t run = 1, radix = 1;
  size_t outer = dims.size();
  bool whole = true;
  runs = {};
  while (outer > 0 && whole) {
    const tensor::DimIndex& index = dims[outer - 1];
    if (!index.contiguous()) break;
    runs.base += index.segments()[0].global * radix;
    run *= index.local();
    radix *= index.whole();
    whole = index.whole() == index.local();
    --outer;
  }
  if (run % n != 0) return false;
  base::require(outer <= static_cast<size_t>(kMostDims), "kernel", "{} of {} dims on a device", kind, dims.size());
  runs.outer = static_cast<int>(outer);
  runs.pieces = Divisor(run / n);
  for (size_t d = outer; d-- > 0;) {
    runs.index[d] = local_index(dims[d]);
    runs.size[d] = Divisor(dims[d].local());
    runs.radix[d] = radix;
    radix *= dims[d].whole();
  }
  return true;
}

// Selects element `by`, 0 to 3, of four words: shifts the random stream.
__device__ __forceinline__ uint32_t pick(uint32_t a, uint32_t b, uint32_t c, uint32_t d, int by) {
  const uint32_t low = (by & 1) != 0 ? b : a, high = (by & 1) != 0 ? d : c;
  return (by & 2) != 0 ? high : low;
}

}  // namespace kintsugi::KINTSUGI_GPU
