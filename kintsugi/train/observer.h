// The interface through which a run reports its progress.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kintsugi/train/metrics.h"

namespace kintsugi::train {

// Called by rank 0 during training.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void note(const std::string& line) = 0;
  // Before the first step: the current activity.
  virtual void preparing(std::string_view what) { static_cast<void>(what); }
  // The activity that begins now and may take long: a step ("step 4/100"), a checkpoint.
  virtual void begins(std::string_view what) { static_cast<void>(what); }
  virtual void step(const Metrics& metrics, int64_t steps) = 0;
  // During validation, before each batch.
  virtual void validating(int64_t samples_done, int64_t samples) {
    static_cast<void>(samples_done);
    static_cast<void>(samples);
  }
  // While evaluating tasks, before each batch.
  virtual void scoring(int64_t requests_done, int64_t requests) {
    static_cast<void>(requests_done);
    static_cast<void>(requests);
  }
  // While sampling, before each token.
  virtual void sampling(int64_t tokens_done, int64_t tokens) {
    static_cast<void>(tokens_done);
    static_cast<void>(tokens);
  }
};

}  // namespace kintsugi::train
