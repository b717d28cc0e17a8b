// The cost of each parallel training strategy for a model, found by lowering each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"

namespace kintsugi::compile {

struct StrategyCosts {
  std::string name;               // "zero 3"
  std::string splits = {};        // "batch; flat of optimizer, gradient, weight"
  std::string refused = {};       // why the model does not support it; then the numbers are 0
  int64_t passes = 0;             // micro-batches per step
  int64_t calls = 0;              // collectives per step
  double sent = 0;                // bytes that each rank sends per step
  int64_t states = 0, arena = 0;  // bytes of a rank
  double flops = 0;               // per rank and step

  int64_t bytes() const { return states + arena; }
};

// Each of plan::strategies() on `ranks` ranks, and the plan of the settings if it has that many. With several stages,
// the maximum of each number. All use the same samples per step; a pass takes, over all ranks, as many as the settings
// say, or the nearest divisor. Nothing is allocated.
std::vector<StrategyCosts> strategy_costs(const config::Settings& settings, int64_t ranks);

// The table; values are relative to the first row.
std::string print(const std::vector<StrategyCosts>& list, int64_t ranks);

}  // namespace kintsugi::compile
