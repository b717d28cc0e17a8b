// The training loop of a rank, with evaluation, metrics, checkpoints, and all reasons to stop.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "kintsugi/train/checkpoints.h"
#include "kintsugi/train/metrics.h"
#include "kintsugi/train/observer.h"
#include "kintsugi/train/rank.h"
#include "kintsugi/train/run_end.h"
#include "kintsugi/train/run_folder.h"

namespace kintsugi::train {

// The loss scale falls from 64 to its minimum of 1 within six.
constexpr int64_t kMostSkipped = 20;

struct LoopOptions {
  const std::atomic<int>* stop = nullptr;  // nonzero: finish the step, save, return
  int64_t stop_at = 0;                     // evaluate, save and return after this step; 0: never
  double peak_flops = 0;                   // of the threads of a rank; 0: unknown
  std::function<void()> begun = {};        // called after each step: from then on there is something to save
  // On rank 0 only; null on the others.
  const RunFolder* folder = nullptr;
  MetricsFile* metrics = nullptr;
  report::EventFile* events = nullptr;
  // Metrics of an interrupted step whose line is no longer in the file; null: unknown.
  const Metrics* interrupted = nullptr;
  Observer* observer = nullptr;
};

struct LoopEnd {
  Stop stop = Stop::none;
  std::optional<double> validation_loss;  // of the last evaluation
};

// Completes what an interruption left undone after the last step, then runs the steps from `progress.step` to the last,
// or until there is a reason to stop. Collective. Throws SharedError if the loss or the gradient is not finite, naming
// the step and the first bad value. With loss scaling (fp16), a gradient that overflows skips the update; throws
// SharedError after kMostSkipped in a row, or if the last step is reached without any update.
LoopEnd run_steps(Rank& rank, const LoopOptions& options, Progress& progress);

}  // namespace kintsugi::train
