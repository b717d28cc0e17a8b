// Which samples of a global batch belong to which rank.
#pragma once

#include <cstdint>

namespace kintsugi::samples {

// Micro-batch m of a step is the samples [m * ranks * micro_batch, ...) of the global batch, and rank r has the r-th
// `micro_batch` of them. So neither the samples of a step nor the place of each in it depend on the layout, and the
// micro-batches of R ranks are those of one rank with R times the micro_batch.
struct Share {
  int64_t global_batch = 0;  // samples per step
  int64_t micro_batch = 0;   // samples per pass of one rank
  int64_t ranks = 1;         // data-parallel
  int64_t rank = 0;

  int64_t micro_batches() const { return global_batch / (micro_batch * ranks); }
  // The place in the global batch of a micro-batch's first sample.
  int64_t place(int64_t m) const { return (m * ranks + rank) * micro_batch; }
  // The number of that sample in the run.
  uint64_t first_sample(uint64_t step, int64_t m) const {
    return step * static_cast<uint64_t>(global_batch) + static_cast<uint64_t>(place(m));
  }
};

// UserError if micro_batch * ranks does not divide global_batch.
void require_even(const Share& share);

}  // namespace kintsugi::samples
