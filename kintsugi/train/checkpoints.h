// Checkpoints of a run: loading initial states, and saving.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kintsugi/checkpoint/background_save.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/neighbour_copies.h"
#include "kintsugi/train/rank.h"

namespace kintsugi::train {

// The progress of a run.
struct Progress {
  int64_t step = 0;                                 // completed
  int64_t tokens = 0;                               // seen since the run began
  std::filesystem::path checkpoint = {};            // newest; empty: none yet
  std::optional<double> best_validation_loss = {};  // over all checkpoints
  bool interrupted = false;                         // validation and sampling after the last step were interrupted
};

// Initializes weights and optimizer states: from the checkpoint that make_rank() opened for resuming, from the weights
// of train.init_from (with a warning if their tokenizer differs), or from the seed. Calls `note` with a line about it.
// Collective.
Progress restore(Rank& rank, bool resume, const std::function<void(const std::string&)>& note);

// Duration of a save on this rank, in seconds.
struct SaveTimes {
  double stage = 0;  // the run waited
  double drain = 0;  // then written in the background; 0: nothing was
};

// Saves the states of a rank. On a device, a save copies them to pinned host memory and is written while the run
// continues; with checkpoint.local they are written there, and copied to the run's folder while it continues;
// otherwise, or with a warning if the host lacks the memory, the run waits. With checkpoint.neighbour, ranks on other
// nodes keep copies of what is written locally until it is in the run's folder. Functions are collective unless stated
// otherwise.
class Saver {
 public:
  explicit Saver(Rank& rank);

  // Saves the states after `progress.step` steps, once the previous save has finished. `best`: its validation loss, if
  // that is the best so far.
  void save(std::optional<double> best, Progress& progress);
  // Whether a save has begun and is not yet a checkpoint; the same on all ranks.
  bool under_way() const { return save_ && save_->under_way(); }
  // Whether this rank is still writing. Not collective.
  bool writes() const { return save_ && !save_->written(); }
  // Between two steps, while a save is in progress: copies more of this rank's part to another node.
  void advance();
  // Waits for the save in progress, if any; `progress.checkpoint` is then that one.
  void finish(Progress& progress);
  // Not collective, at the end of a run with an error: finishes as far as possible.
  void finish_alone(Progress& progress) noexcept;
  // Not collective: the times of the save that was completed last, once.
  std::optional<SaveTimes> take_times() { return std::exchange(times_, std::nullopt); }

 private:
  void saved(std::filesystem::path checkpoint, Progress& progress);

  Rank& rank_;
  std::optional<checkpoint::BackgroundSave> save_;
  std::unique_ptr<checkpoint::NeighbourCopies> copies_;  // null: none are kept
  bool copied_ = false;                                  // those of the save in progress
  std::optional<checkpoint::Best> best_;                 // of the save in progress
  std::optional<SaveTimes> times_;
};

// Records that the existing checkpoint of `progress.step` is the best so far.
void set_best(const Rank& rank, double validation_loss, Progress& progress);

}  // namespace kintsugi::train
