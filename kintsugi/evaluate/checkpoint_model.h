// A model as a checkpoint holds it: its configuration, tokenizer and weights.
#pragma once

#include <filesystem>
#include <memory>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/config/origin.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/models/step.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::evaluate {

struct CheckpointModel {
  // `path` is a checkpoint's folder or a run's, whose newest checkpoint is taken. threads 0: as many as cores.
  CheckpointModel(const std::filesystem::path& path, int threads);

  // An executor for graphs over the checkpoint's weights, with the weights loaded.
  std::unique_ptr<run::Executor> load(const models::Graphs& graphs);

  checkpoint::CheckpointReader reader;
  config::Resolved config;
  std::unique_ptr<text::Tokenizer> tokenizer;  // null: the checkpoint has none
  std::unique_ptr<kernels::KernelSet> kernels;
  base::ThreadTeam team;
};

// The program of graphs for evaluation or generation on one rank.
program::Program build_program(const models::Graphs& graphs, const kernels::KernelSet& kernels, int threads);

}  // namespace kintsugi::evaluate
