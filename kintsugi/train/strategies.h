// What ways of training in parallel would cost a model, by really lowering each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"

namespace kintsugi::train {

struct Strategy {
  std::string name;               // "zero 3"
  std::string splits;             // "batch; flat of optimizer, gradient, weight"
  std::string refused;            // why the model cannot take it; then the numbers are 0
  int64_t passes = 0;             // micro-batches of a step
  int64_t calls = 0;              // collectives of a step
  double sent = 0;                // bytes that each rank sends in a step
  int64_t states = 0, arena = 0;  // bytes of a rank
  double flops = 0;               // of a rank in a step

  int64_t bytes() const { return states + arena; }
};

// One rank; then, for `ranks`, data, zero 1, 2, 3, tensor, tensor and sequence, context in three ways, pipeline; and
// the plan of the settings where it has as many ranks. Of stages that are not alike: the most of each number. All take
// the same samples in a step, in passes of as many on all ranks together as the settings say, or as near as that can
// be. Nothing is allocated.
std::vector<Strategy> strategies(const config::Settings& settings, int64_t ranks);

// The table; the first row is what the others are measured by.
std::string print(const std::vector<Strategy>& list, int64_t ranks);

}  // namespace kintsugi::train
