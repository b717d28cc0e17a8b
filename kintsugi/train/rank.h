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

namespace kintsugi::train {

// The parts that a rank trains with. Each member uses only those before it.
struct Rank {
  comm::World& world;
  config::Resolved config;                                    // with what follows from the data
  std::unique_ptr<comm::Communicator> all = {};               // all ranks
  std::unique_ptr<checkpoint::CheckpointReader> newest = {};  // to resume from; null: a new run
  Corpus corpus = {};
  std::unique_ptr<kernels::KernelSet> kernels = {};
  std::unique_ptr<base::ThreadTeam> team = {};
  std::unique_ptr<run::Executor> executor = {};
  double step_flops = 0;                       // of all ranks
  std::optional<double> planned_seconds = {};  // of a step, on rank 0

  const config::Settings& settings() const { return config.settings; }
  std::filesystem::path folder() const { return config.settings.train.folder; }
  bool leads() const { return world.rank() == 0; }
};

// The seconds that a step of these programs, one for each stage, should take.
using PlanStep = std::function<double(const std::vector<program::Program>& stages)>;

struct RankOptions {
  bool alone = true;    // no other rank is in this process
  bool resume = false;  // from the newest complete checkpoint in the run's folder, if there is one
  std::function<void(std::string_view)> now = [](std::string_view) {};  // told what is done
  PlanStep plan = {};                                                   // asked on rank 0
};

// Opens the checkpoint and the data, builds the programs, checks that memory suffices, that ranks agree and that a
// resumed run has the data that it began with, and allocates. The states have no values yet. `world` outlives the rank.
// All ranks call together. UserError for bad input, on all of them.
Rank make_rank(config::Resolved config, comm::World& world, const RankOptions& options);

}  // namespace kintsugi::train
