// Assigns the samples of a global batch to ranks.
#pragma once

#include <cstdint>

namespace kintsugi::samples {

// Micro-batch m of a step is the samples [m * ranks * micro_batch, ...) of the global batch, of which rank r has the
// r-th `micro_batch`. Neither the samples of a step nor their order depend on the layout, and the micro-batches of R
// ranks equal those of one rank with R times the micro_batch.
struct Share {
  int64_t global_batch = 0;  // samples per step
  int64_t micro_batch = 0;   // samples per pass and rank
  int64_t ranks = 1;         // data-parallel
  int64_t rank = 0;

  int64_t micro_batches() const { return global_batch / (micro_batch * ranks); }
  // The index in the global batch of a micro-batch's first sample.
  int64_t place(int64_t m) const { return (m * ranks + rank) * micro_batch; }
  // The index of that sample in the run.
  uint64_t first_sample(uint64_t step, int64_t m) const {
    return step * static_cast<uint64_t>(global_batch) + static_cast<uint64_t>(place(m));
  }
};

// Throws UserError if micro_batch * ranks does not divide global_batch.
void require_even(const Share& share);

}  // namespace kintsugi::samples
