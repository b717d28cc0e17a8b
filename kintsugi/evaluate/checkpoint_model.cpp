#include "kintsugi/evaluate/checkpoint_model.h"

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/memory.h"
#include "kintsugi/checkpoint/states.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/limits.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/evaluate/layout.h"
#include "kintsugi/evaluate/make_executor.h"
#include "kintsugi/evaluate/not_finite.h"
#include "kintsugi/exchange/averaged_source.h"
#include "kintsugi/run/same_programs.h"
#include "kintsugi/text/declared_tokens.h"

namespace kintsugi::evaluate {

CheckpointModel::CheckpointModel(const std::filesystem::path& path, const config::Parallel& layout, comm::World& world,
                                 const std::string& dtype, bool averages, bool allow_not_finite)
    : world_(world),
      allow_not_finite_(allow_not_finite),
      all_(comm::group_of_all(world)),
      saved_(exchange::open_model(path, *all_)),
      team_(static_cast<int>(layout.threads)) {
  comm::together(*all_, [&] {
    if (averages) saved_.weights = exchange::with_averages(std::move(saved_.weights));
    settings_ = settings_now(saved_.settings(), layout, dtype);
    kernels_ = compile::kernels_to_run(settings_);
    if (!saved_.tokenizer.empty())
      tokenizer_ =
          text::with_begin_of_texts(text::parse_tokenizer(saved_.tokenizer, (folder() / "tokenizer.json").string()),
                                    config::begins_samples(settings_) ? settings_.data.first_token : -1);
  });
}

std::unique_ptr<run::Executor> CheckpointModel::load(const models::Graphs& graphs) {
  std::vector<program::Program> stages;
  comm::together(*all_,
                 [&] { stages = compile::compile({.settings = settings_, .kernels = *kernels_, .graphs = &graphs}); });
  run::require_same_programs(*all_, "evaluate", stages);
  repeated_ = repeated_axes(stages);
  program::Program program = compile::program_of_rank(std::move(stages), world_.rank());
  comm::together(*all_, [&] {
    const auto bytes = static_cast<size_t>(program.bytes());
    if (bytes > 0 && !kernels_->on_device() && !base::can_allocate(bytes))
      throw base::UserError("evaluate", "cannot allocate the {} that the model needs; {} needs less",
                            base::format_bytes(bytes),
                            graphs.decode ? "a smaller --context" : "a smaller --batch or --sequence");
  });
  auto executor =
      make_executor(std::move(program), *kernels_, team_,
                    run::Place{.world = &world_, .time_limit = comm::time_limit(settings_.parallel.timeout_seconds)});
  checkpoint::load_states(*executor, *all_, *saved_.weights, checkpoint::Load::weights);
  if (!allow_not_finite_) require_finite_weights(*executor, *saved_.weights, *all_);
  return executor;
}

}  // namespace kintsugi::evaluate
