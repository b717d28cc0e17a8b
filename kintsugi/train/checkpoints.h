// The checkpoints of a run: loading its initial states, and saving.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "kintsugi/train/rank.h"

namespace kintsugi::train {

// The progress of a run.
struct Progress {
  int64_t step = 0;                                 // steps done
  int64_t tokens = 0;                               // seen since the run began
  std::filesystem::path checkpoint = {};            // the newest; empty: none yet
  std::optional<double> best_validation_loss = {};  // of all checkpoints
  bool interrupted = false;                         // what follows the last step, validation and texts, was not done
};

// Sets the values of weights and optimizer state: from the checkpoint that make_rank has opened to resume from,
// from the weights of train.init_from (with a warning if they are of another tokenizer), or from the seed. `note` is
// called with a line about it. All ranks call together.
Progress restore(Rank& rank, bool resume, const std::function<void(const std::string&)>& note);

// Saves the states as they are after `progress.step` steps. `best`: its validation loss, if that is the best so far.
// All ranks call together.
void save(Rank& rank, std::optional<double> best, Progress& progress);

// The checkpoint of `progress.step`, which is there already, is the best so far.
void set_best(const Rank& rank, double validation_loss, Progress& progress);

}  // namespace kintsugi::train
