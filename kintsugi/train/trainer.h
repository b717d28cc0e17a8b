// A complete run: from its configuration to its last checkpoint.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/config/origin.h"
#include "kintsugi/train/loop.h"
#include "kintsugi/train/observer.h"

namespace kintsugi::train {

// if_any: resume if the run's folder holds a run, else start anew. Rank 0 decides.
enum class Resume { no, yes, if_any };

struct TrainOptions {
  config::Resolved config;
  Resume resume = Resume::no;
  const std::atomic<int>* stop = nullptr;  // nonzero: finish the step, save, return
  int64_t stop_at = 0;                     // evaluate, save and return after this step; 0: never
  double peak_flops = 0;                   // of the threads of a rank; 0: unknown
  PlanStep plan = {};                      // if set, its prediction is shown next to measured step times
  std::function<void()> begun = {};        // called by each rank after a step: from then on there is something to save
};

struct Outcome {
  int64_t step = 0;                  // completed
  bool finished = false;             // all of them
  Stop reason = Stop::none;          // why it ended early
  std::filesystem::path checkpoint;  // newest
  std::optional<double> validation_loss;
  std::optional<double> best_validation_loss;
};

// Throws UserError for invalid input, and if the loss or the gradient is not finite, naming the step and the first bad
// value. Earlier checkpoints remain complete. `worlds`: the ranks of this process (make_worlds); they must outlive the
// call. In a process without rank 0, returns the outcome of its first rank, and `observer` is not called.
Outcome train(TrainOptions options, std::span<const std::unique_ptr<comm::World>> worlds, Observer& observer);

}  // namespace kintsugi::train
