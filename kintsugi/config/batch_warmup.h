// The warm-up of the batch (McCandlish et al. 2018; Smith et al. 2018): the first steps have fewer samples than
// global_batch, by [train] batch_warmup.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kintsugi/config/settings.h"

namespace kintsugi::config {

// Some steps with a number of samples each.
struct BatchStage {
  int64_t samples = 0;
  int64_t steps = 0;

  bool operator==(const BatchStage&) const = default;
};

// Throws UserError for an entry other than two numbers above 0.
std::vector<BatchStage> batch_stages(const Train& train);

// Samples of step 0, 1, ..., and of all steps before it. `full`: those of a step after the stages.
int64_t batch_of_step(std::span<const BatchStage> stages, int64_t full, int64_t step);
int64_t samples_before(std::span<const BatchStage> stages, int64_t full, int64_t step);

inline int64_t batch_of_step(const Train& train, int64_t step) {
  return train.batch_warmup.empty() ? train.global_batch : batch_of_step(batch_stages(train), train.global_batch, step);
}
inline int64_t samples_before(const Train& train, int64_t step) {
  return train.batch_warmup.empty() ? step * train.global_batch
                                    : samples_before(batch_stages(train), train.global_batch, step);
}

}  // namespace kintsugi::config
