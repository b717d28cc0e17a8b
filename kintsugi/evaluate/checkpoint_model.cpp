#include "kintsugi/evaluate/checkpoint_model.h"

#include <thread>

#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/states.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/lower/lower.h"

namespace kintsugi::evaluate {
namespace {

std::unique_ptr<text::Tokenizer> tokenizer_of(const checkpoint::CheckpointReader& reader) {
  const std::string json = reader.tokenizer();
  return json.empty() ? nullptr : text::parse_tokenizer(json, (reader.folder() / "tokenizer.json").string());
}

}  // namespace

CheckpointModel::CheckpointModel(const std::filesystem::path& path, int threads)
    : reader(checkpoint::find_checkpoint(path)),
      config(config::load_saved(reader.folder() / "config.toml")),
      tokenizer(tokenizer_of(reader)),
      kernels(kernels::kernels_named(config.settings.train.kernels, tensor::dtype_from(config.settings.train.dtype))),
      team(threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))) {}

std::unique_ptr<run::Executor> CheckpointModel::load(const models::Graphs& graphs) {
  auto executor = std::make_unique<run::Executor>(build_program(graphs, *kernels, team.size()), *kernels, team);
  checkpoint::load_states(*executor, reader, checkpoint::Load::weights);
  return executor;
}

program::Program build_program(const models::Graphs& graphs, const kernels::KernelSet& kernels, int threads) {
  const auto pointer = [](const std::optional<graph::Graph>& g) { return g ? &*g : nullptr; };
  const plan::Plan plan = plan::plan_from({});
  std::vector<program::Program> stages = lower::lower({.states = *graphs.states,
                       .evaluate = pointer(graphs.evaluate),
                       .prefill = pointer(graphs.prefill),
                       .decode = pointer(graphs.decode)},
                      {.plan = plan, .kernels = kernels, .threads = threads});
  return std::move(stages[0]);
}

}  // namespace kintsugi::evaluate
