// Now and then a run measures a step, and writes where its time went into its folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "kintsugi/train/observer.h"
#include "kintsugi/train/rank.h"
#include "kintsugi/train/step_profiler.h"

namespace kintsugi::train {

// The file of a run's folder that holds the step that was last measured. It is replaced as a whole, and nothing but
// pages for people reads it.
inline constexpr const char* kProfileFile = "profile.json";

// The third step after a start is measured, one some seconds later, and then one a minute. All ranks call together, for
// the same steps.
class StepTraces {
 public:
  // `folder`, `observer`: of rank 0 alone; null on the others. A file that cannot be written is told to the observer.
  StepTraces(Rank& rank, const std::filesystem::path* folder, Observer* observer);

  void before_step();
  void after_step(int64_t steps_done);
  // Rank 0 has not measured for long: then all ask for the next step.
  bool due() const;
  void ask() { next_ = true; }

 private:
  using Clock = std::chrono::steady_clock;

  void write(const std::string& json) const;

  Rank& rank_;
  const std::filesystem::path* folder_;
  Observer* observer_;
  std::optional<ClockOffset> clock_;
  std::optional<StepProfiler> profiler_;  // of a step that is measured
  bool next_ = false;
  int64_t steps_ = 0, measured_ = 0;  // since the start
  Clock::time_point last_ = Clock::now();
};

}  // namespace kintsugi::train
