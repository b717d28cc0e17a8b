// Memory of a program by purpose: its states, and the values of a list of calls at its peak.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/live_bytes.h"
#include "kintsugi/program/program.h"

namespace kintsugi::program {

// In bytes per rank; total() equals p.bytes().
struct MemoryTable {
  int64_t weights = 0, gradients = 0, optimizer = 0, statistics = 0, caches = 0;  // states; gradients: accumulators
  int64_t live_gradients = 0, activations = 0, communication = 0, workspace = 0;  // at the peak
  int64_t sums = 0, staging = 0;                                                  // device only
  int64_t packing = 0;                                                            // alignment, and fragmentation
  int64_t others = 0;  // additional arena of other lists of calls
  Instant peak = {};

  int64_t total() const {
    return weights + gradients + optimizer + statistics + caches + live_gradients + activations + communication +
           workspace + sums + staging + packing + others;
  }
};

// For the list "train", or else the list that needs the most.
MemoryTable memory_table(const Program& p);
const CallList& largest_list(const Program& p);

// The part of the model on a stage: its layers, ascending, where -1 is the embedding and the number of layers is the
// head; and the number of its weight elements over all ranks. A weight that another stage also has and saves is counted
// there.
struct ModelShare {
  std::vector<int> layers;
  int64_t parameters = 0;
};
ModelShare model_share(const Program& p);

}  // namespace kintsugi::program
