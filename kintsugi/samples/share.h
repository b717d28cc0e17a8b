// Assigns the samples of a global batch to ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/config/batch_warmup.h"

namespace kintsugi::samples {

// Micro-batch m of a step is the samples [m * ranks * micro_batch, ...) of the global batch, of which rank r has the
// r-th `micro_batch`. Neither the samples of a step nor their order depend on the layout, and the micro-batches of R
// ranks equal those of one rank with R times the micro_batch.
struct Share {
  int64_t global_batch = 0;  // samples per step
  int64_t micro_batch = 0;   // samples per pass and rank
  int64_t ranks = 1;         // data-parallel
  int64_t rank = 0;
  std::vector<config::BatchStage> warmup = {};  // steps before those of global_batch

  int64_t micro_batches(uint64_t step) const {
    return config::batch_of_step(warmup, global_batch, static_cast<int64_t>(step)) / (micro_batch * ranks);
  }
  // The index in the global batch of a micro-batch's first sample.
  int64_t place(int64_t m) const { return (m * ranks + rank) * micro_batch; }
  // The index of that sample in the run.
  uint64_t first_sample(uint64_t step, int64_t m) const {
    return static_cast<uint64_t>(config::samples_before(warmup, global_batch, static_cast<int64_t>(step)) + place(m));
  }
};

// Throws UserError if micro_batch * ranks does not divide global_batch or a batch of the warm-up.
void require_even(const Share& share);

}  // namespace kintsugi::samples
