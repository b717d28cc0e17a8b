#include "kintsugi/evaluate/checkpoint_model.h"

#include <fmt/ranges.h>

#include "kintsugi/base/processor.h"
#include "kintsugi/checkpoint/open.h"
#include "kintsugi/checkpoint/same.h"
#include "kintsugi/checkpoint/states.h"
#include "kintsugi/checkpoint/together.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/evaluate/layout.h"
#include "kintsugi/lower/lower.h"
#include "kintsugi/plan/check_plan.h"
#include "kintsugi/program/print.h"

namespace kintsugi::evaluate {
namespace {

// The plan against the model and its samples. The one text of a generation need not be divided.
void check(const plan::Plan& plan, const models::Graphs& graphs) {
  const graph::Graph* const list[] = {graphs.evaluate ? &*graphs.evaluate : &*graphs.prefill};
  plan::ModelDims dims = plan::dims_of(list);
  if (!graphs.evaluate) plan::forget_size(dims, plan::kSamples);
  plan::check_plan(plan, dims);
}

}  // namespace

CheckpointModel::CheckpointModel(const std::filesystem::path& path, const config::Parallel& layout, comm::World& world)
    : world_(world),
      all_(checkpoint::everyone(world)),
      reader_(checkpoint::open_checkpoint(path, *all_)),
      team_(static_cast<int>(layout.threads)) {
  checkpoint::together(*all_, [&] {
    settings_ = on_ranks_of(config::load_saved(reader_->folder() / "config.toml").settings, layout);
    kernels_ = kernels::kernels_named(settings_.train.kernels, tensor::dtype_from(settings_.train.dtype));
    tokenizer_json_ = reader_->tokenizer();
    if (!tokenizer_json_.empty())
      tokenizer_ = text::parse_tokenizer(tokenizer_json_, (reader_->folder() / "tokenizer.json").string());
  });
}

std::unique_ptr<run::Executor> CheckpointModel::load(const models::Graphs& graphs) {
  std::vector<program::Program> stages;
  checkpoint::together(*all_, [&] {
    const plan::Plan plan = plan::plan_from(settings_.parallel);
    check(plan, graphs);
    stages = build_programs(graphs, plan, *kernels_, team_.size());
  });
  // Ranks with other programs would wait for each other.
  checkpoint::require_same(*all_, "evaluate", "processor",
                           fmt::format("{}", fmt::join(base::this_processor().units, " ")));
  std::string text;
  for (const program::Program& p : stages) text += program::print(p);
  checkpoint::require_same(*all_, "evaluate", "program", text);
  repeated_ = repeated_axes(stages);
  const auto stage = static_cast<size_t>(program::stage_of(stages[0].mesh, world_.rank()));
  auto executor = std::make_unique<run::Executor>(std::move(stages[stage]), *kernels_, team_, &world_);
  checkpoint::load_states(*executor, *all_, *reader_, checkpoint::Load::weights);
  return executor;
}

std::vector<program::Program> build_programs(const models::Graphs& graphs, const plan::Plan& plan,
                                             const kernels::KernelSet& kernels, int threads) {
  const auto pointer = [](const std::optional<graph::Graph>& g) { return g ? &*g : nullptr; };
  return lower::lower({.states = *graphs.states,
                       .evaluate = pointer(graphs.evaluate),
                       .prefill = pointer(graphs.prefill),
                       .decode = pointer(graphs.decode),
                       .micro_batches = plan.stages()},  // no schedule of training takes fewer
                      {.plan = plan, .kernels = kernels, .threads = threads});
}

program::Program build_program(const models::Graphs& graphs, const kernels::KernelSet& kernels, int threads) {
  return std::move(build_programs(graphs, plan::plan_from({}), kernels, threads)[0]);
}

}  // namespace kintsugi::evaluate
