// The memory of a program by purpose: its states, and the values of a list of calls at the instant that needs most.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/live_bytes.h"
#include "kintsugi/program/program.h"

namespace kintsugi::program {

// In bytes of a rank; total() is p.bytes().
struct MemoryTable {
  int64_t weights = 0, gradients = 0, optimizer = 0, statistics = 0, caches = 0;  // states; gradients: accumulators
  int64_t live_gradients = 0, activations = 0, communication = 0, workspace = 0;  // at the peak
  int64_t sums = 0, staging = 0;                                                  // of a device
  int64_t packing = 0;                                                            // alignment, and gaps between values
  int64_t others = 0;  // arena that only other lists of calls need
  Instant peak = {};

  int64_t total() const {
    return weights + gradients + optimizer + statistics + caches + live_gradients + activations + communication +
           workspace + sums + staging + packing + others;
  }
};

// For the list "train", or the one that needs most if there is none.
MemoryTable memory_table(const Program& p);
const CallList& largest_list(const Program& p);

// The part of the model on a stage: layers in ascending order, -1 is the embedding, and the number of layers is the
// head; and the elements of its weights over all ranks. A weight that another stage has too and saves is counted
// there.
struct ModelShare {
  std::vector<int> layers;
  int64_t parameters = 0;
};
ModelShare model_share(const Program& p);

}  // namespace kintsugi::program
