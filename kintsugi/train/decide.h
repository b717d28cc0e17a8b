// Decisions that all ranks take together.
#pragma once

#include <string_view>

#include "kintsugi/train/loop.h"

namespace kintsugi::train {

// What all ranks do after a step, or during validation.
struct Decision {
  Stop stop = Stop::none;
  bool save = false;     // the newest checkpoint is too old
  bool measure = false;  // the next step
  bool writes = false;   // the last checkpoint
  bool compare = false;  // the ranks' times, to find stragglers
};

// The maximum of all ranks' requests, the same on each. Collective. `when`: "after step 7".
Decision decide(const Rank& rank, const Decision& wish, std::string_view when);

bool signalled(const LoopOptions& options);
bool stops_here(const LoopOptions& options, int64_t step);

}  // namespace kintsugi::train
