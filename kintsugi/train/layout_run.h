// A training program on all of its ranks in this process, for tests of layouts and `kintsugi compare`.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/transports.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/models/step.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/samples/batch.h"

namespace kintsugi::train {

class LayoutRun {
 public:
  // `plan`: replaces that of the settings; `settings.parallel.data` is still the number of parts of the batch. `damage`
  // modifies the programs before they run, for tests that must detect it. `logits`: keep those of a step as the state
  // models::kLogits. `build`: the model's graph, instead of its family's.
  using Damage = std::function<void(program::Program&)>;
  explicit LayoutRun(const config::Settings& settings, std::optional<plan::Plan> plan = std::nullopt,
                     const Damage& damage = {}, const comm::MakeWorlds& make_worlds = comm::thread_worlds,
                     models::Logits logits = models::Logits::none, models::BuildTrunk build = nullptr);
  ~LayoutRun();

  int ranks() const { return static_cast<int>(executors_.size()); }
  const program::Program& program() const { return executors_[0]->program(); }
  const run::Executor& executor(int rank) const { return *executors_[static_cast<size_t>(rank)]; }
  run::Executor& executor(int rank) { return *executors_[static_cast<size_t>(rank)]; }

  // Runs one step; `batch` supplies micro-batch m over all ranks, the same for every rank, and is called by each.
  void step(int64_t step, double learning_rate, const std::function<void(int64_t m, samples::BatchMemory&)>& batch) {
    this->step(step, learning_rate, parts_, batch);
  }
  // As above, for batches with other parts than the model reads: those of a source, some of which are optional.
  void step(int64_t step, double learning_rate, const samples::Parts& parts,
            const std::function<void(int64_t m, samples::BatchMemory&)>& batch);

  double loss() const;    // mean over the last step
  double tokens() const;  // number of tokens in that mean
  // All states of a kind, whole, by name, in fp64; gradients are the sums of the last step. Throws InternalError if
  // ranks that hold the same element disagree, or an element is held by none.
  std::map<std::string, std::vector<double>> states(program::StateKind kind) const;
  std::vector<double> state(std::string_view name) const;

 private:
  std::map<std::string, std::vector<double>> whole_states(
      const std::function<bool(const program::StateInfo&)>& wanted) const;

  config::Settings settings_;
  samples::Parts parts_;
  std::unique_ptr<kernels::KernelSet> kernels_;
  std::vector<std::unique_ptr<comm::World>> worlds_;
  std::vector<std::unique_ptr<base::ThreadTeam>> teams_;
  std::vector<std::unique_ptr<run::Executor>> executors_;
};

}  // namespace kintsugi::train
