// One rank of a run: its data, programs and memory.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/config/origin.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/score_tasks.h"

namespace kintsugi::train {

// The parts that a rank trains with. Each member uses only earlier ones.
struct Rank {
  comm::World& world;
  config::Resolved config;                                    // including what depends on the data
  std::unique_ptr<comm::Communicator> all = {};               // all ranks
  std::unique_ptr<checkpoint::CheckpointReader> newest = {};  // to resume from; null: a new run
  Corpus corpus = {};
  std::shared_ptr<const OpenTasks> tasks = {};  // null: none
  std::unique_ptr<kernels::KernelSet> kernels = {};
  std::unique_ptr<base::ThreadTeam> team = {};
  std::unique_ptr<run::Executor> executor = {};
  double step_flops = 0;                       // over all ranks
  std::optional<double> planned_seconds = {};  // per step, on rank 0

  const config::Settings& settings() const { return config.settings; }
  std::filesystem::path folder() const { return config.settings.train.folder; }
  bool leads() const { return world.rank() == 0; }
};

// Predicts the seconds of a step of these programs, one per stage.
using PlanStep = std::function<double(const std::vector<program::Program>& stages)>;

struct RankOptions {
  bool alone = true;    // no other rank is in this process
  bool resume = false;  // from the newest complete checkpoint in the run's folder, if any
  std::function<void(std::string_view)> now = [](std::string_view) {};  // current activity
  PlanStep plan = {};                                                   // called on rank 0
};

// Opens the checkpoint and the data, compiles the programs, checks that memory suffices, that ranks agree and that a
// resumed run has its original data, and allocates. States are not initialized yet. `world` must outlive the rank.
// Collective; throws UserError for invalid input on all ranks.
Rank make_rank(config::Resolved config, comm::World& world, const RankOptions& options);

}  // namespace kintsugi::train
