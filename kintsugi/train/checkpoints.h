// The checkpoints of a run: loading its initial states, and saving.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "kintsugi/checkpoint/background_save.h"
#include "kintsugi/checkpoint/folder.h"
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

// Saves the states of a rank. Where it computes on a device, a save copies them to pinned memory of the host and is
// written while the run goes on; otherwise, or with a warning where the host has not that much memory, the run waits.
// All ranks call together, but for those functions that say otherwise.
class Saver {
 public:
  explicit Saver(Rank& rank);

  // The states as they are after `progress.step` steps, once the save before is finished. `best`: its validation loss,
  // if that is the best so far.
  void save(std::optional<double> best, Progress& progress);
  // The same on all ranks: a save was begun, and is no checkpoint yet.
  bool under_way() const { return save_ && save_->under_way(); }
  // Of one rank alone: it still writes.
  bool writes() const { return save_ && !save_->written(); }
  // Waits for the save that is under way, if there is one; then `progress.checkpoint` is that.
  void finish(Progress& progress);
  // Of one rank alone, at the end of a run with an error: the same as far as it goes.
  void finish_alone(Progress& progress) noexcept;

 private:
  void saved(std::filesystem::path checkpoint, Progress& progress);

  Rank& rank_;
  std::optional<checkpoint::BackgroundSave> save_;
  std::optional<checkpoint::Best> best_;  // what the save that is under way is
};

// The checkpoint of `progress.step`, which is there already, is the best so far.
void set_best(const Rank& rank, double validation_loss, Progress& progress);

}  // namespace kintsugi::train
