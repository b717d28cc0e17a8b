// A model loaded from a checkpoint or a Hugging Face folder on the ranks that share it: configuration, tokenizer and
// weights.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/exchange/open_model.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/models/step.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::evaluate {

// One rank of a layout. Construct it and call its functions collectively on all ranks of `world`; if one rank fails,
// all throw.
class CheckpointModel {
 public:
  // `path` is a checkpoint folder, a run folder, whose newest complete checkpoint is loaded, or a Hugging Face folder.
  // `dtype` is the type of weights and computation; empty: as in training. `averages`: with the moving averages of the
  // weights instead of the weights; throws UserError if it holds none. `allow_not_finite`: accept weights that become
  // infinite in `dtype`.
  CheckpointModel(const std::filesystem::path& path, const config::Parallel& layout, comm::World& world,
                  const std::string& dtype = {}, bool averages = false, bool allow_not_finite = false);

  // Returns an executor of this rank's stage for graphs over the checkpoint's weights, with this rank's shards loaded.
  // Throws UserError if the plan does not fit the model.
  std::unique_ptr<run::Executor> load(const models::Graphs& graphs);

  comm::Communicator& all() { return *all_; }
  bool leads() const { return all_->rank() == 0; }
  const std::filesystem::path& folder() const { return saved_.folder(); }
  const config::Settings& settings() const { return settings_; }         // with [parallel] and dtype as given
  const text::Tokenizer* tokenizer() const { return tokenizer_.get(); }  // null: the checkpoint has none
  bool made_elsewhere() const { return saved_.made_elsewhere; }
  const std::vector<std::string>& notes() const { return saved_.notes; }  // on what was skipped
  const std::string& tokenizer_json() const { return saved_.tokenizer; }
  // Axes along which what was last loaded is replicated.
  const std::vector<std::string>& repeated() const { return repeated_; }

 private:
  comm::World& world_;
  bool allow_not_finite_;
  std::unique_ptr<comm::Communicator> all_;
  exchange::SavedModel saved_;
  config::Settings settings_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<kernels::KernelSet> kernels_;
  base::ThreadTeam team_;
  std::vector<std::string> repeated_;
};

}  // namespace kintsugi::evaluate
