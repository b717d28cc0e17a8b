// The steps of a rank, with evaluation, metrics, checkpoints, and all reasons to stop.
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

// The scale falls from 64 to 1, its least, within six.
constexpr int64_t kMostSkipped = 20;

struct LoopOptions {
  const std::atomic<int>* stop = nullptr;  // not 0: finish the step, save, return
  int64_t stop_at = 0;                     // evaluate, save and return after this step; 0: no such step
  double peak_flops = 0;                   // of the threads of a rank; 0: not known
  std::function<void()> begun = {};        // called after each step: there is something to save
  // Of rank 0 alone; null on the others.
  const RunFolder* folder = nullptr;
  MetricsFile* metrics = nullptr;
  report::EventFile* events = nullptr;
  // Of an interrupted step, whose line the file has not any more; null: it is not known.
  const Metrics* interrupted = nullptr;
  Observer* observer = nullptr;
};

struct LoopEnd {
  Stop stop = Stop::none;
  std::optional<double> validation_loss;  // of the last evaluation
};

// What was left undone after the last step if that was interrupted, then the steps from `progress.step` to the last, or
// until there is a reason to stop. All ranks call together. SharedError
// if the loss or the gradient is not finite: the step, and the first bad value. Where the loss is scaled (fp16), a
// gradient that overflows skips the update; SharedError after kMostSkipped of them in a row, or if the last step is
// reached without a single update.
LoopEnd run_steps(Rank& rank, const LoopOptions& options, Progress& progress);

}  // namespace kintsugi::train
