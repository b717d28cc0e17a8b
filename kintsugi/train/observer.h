// The interface through which a run reports its progress.
#pragma once

#include <cstdint>
#include <string>

#include "kintsugi/train/metrics.h"

namespace kintsugi::train {

// Called by rank 0 while it trains.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void note(const std::string& line) = 0;
  virtual void step(const Metrics& metrics, int64_t steps) = 0;
};

}  // namespace kintsugi::train
