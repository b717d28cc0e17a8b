// A whole run: from its configuration to its last checkpoint.
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

// if_any: where the run's folder holds a run, else from the beginning. Rank 0 decides.
enum class Resume { no, yes, if_any };

struct TrainOptions {
  config::Resolved config;
  Resume resume = Resume::no;
  const std::atomic<int>* stop = nullptr;  // not 0: finish the step, save, return
  int64_t stop_at = 0;                     // evaluate, save and return after this step; 0: no such step
  double peak_flops = 0;                   // of the threads of a rank; 0: not known
  PlanStep plan = {};                      // if there is one, its result stands beside the measured time of steps
  std::function<void()> begun = {};        // called by each rank after a step: from then on there is something to save
};

struct Outcome {
  int64_t step = 0;                  // steps done
  bool finished = false;             // all of them
  Stop reason = Stop::none;          // why it ended early
  std::filesystem::path checkpoint;  // the newest
  std::optional<double> validation_loss;
  std::optional<double> best_validation_loss;
};

// UserError for bad input, and if the loss or the gradient is not finite: the step, and the first bad value. Earlier
// checkpoints are complete. `worlds`: the ranks of this process (make_worlds); they outlive the call. On a process
// without rank 0 the outcome is that of its first rank, and nothing is observed.
Outcome train(TrainOptions options, std::span<const std::unique_ptr<comm::World>> worlds, Observer& observer);

}  // namespace kintsugi::train
