// Measures a step of a run occasionally, and writes where its time went into the run's folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "kintsugi/train/observer.h"
#include "kintsugi/train/rank.h"
#include "kintsugi/train/step_profiler.h"
#include "kintsugi/train/stragglers.h"

namespace kintsugi::train {

// The file in a run's folder with the last measured step. Replaced atomically; only read for display.
inline constexpr const char* kProfileFile = "profile.json";

// Measures the third step after a start, one some seconds later, and then one per minute. On devices these are the
// steps by which stragglers are found: there the host does not see what a rank waits for.
// Collective, for the same steps.
class StepTraces {
 public:
  // `folder`, `observer`: on rank 0 only; null on the others. Reports a file that cannot be written to the observer.
  StepTraces(Rank& rank, const std::filesystem::path* folder, Observer* observer, Stragglers& stragglers);

  void before_step();
  void after_step(int64_t steps_done);
  // Whether rank 0 has not measured for long; all ranks then request the next step.
  bool due() const;
  void ask() { next_ = true; }

 private:
  using Clock = std::chrono::steady_clock;

  void write(const std::string& json) const;

  Rank& rank_;
  const std::filesystem::path* folder_;
  Observer* observer_;
  Stragglers& stragglers_;
  std::optional<ClockOffset> clock_;
  std::optional<StepProfiler> profiler_;  // of the step being measured
  bool next_ = false;
  int64_t steps_ = 0, measured_ = 0;  // since the start
  Clock::time_point last_ = Clock::now();
};

}  // namespace kintsugi::train
