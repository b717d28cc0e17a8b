#include "kintsugi/train/profile_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "kintsugi/base/file.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/limits.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/comm/texts_of_all.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/evaluate/make_executor.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/report/measured_trace.h"
#include "kintsugi/run/same_programs.h"
#include "kintsugi/train/batches.h"
#include "kintsugi/train/device_limits.h"
#include "kintsugi/train/random_samples.h"
#include "kintsugi/train/require_memory.h"
#include "kintsugi/train/step_profiler.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::train {
namespace {

class ProfiledRank {
 public:
  ProfiledRank(const ProfileOptions& options, comm::World& world, size_t local_ranks)
      : options_(options),
        settings_(options.settings),
        world_(world),
        local_ranks_(static_cast<int64_t>(local_ranks)),
        all_(comm::group_of_all(world)),
        kernels_(compile::kernels_to_run(settings_)),
        team_(static_cast<int>(settings_.parallel.threads)) {
    run::require_same_programs(*all_, "profile", options.stages);
    require_memory(settings_, options.stages, machine_of(settings_, kernels_->device()), *all_,
                   [&](std::string_view what) { tell(what); });
  }

  ProfiledRun run() {
    tell("measuring what this machine can do");
    const Limits limits = limits_of_all();
    tell("setting the initial values");
    const auto made =
        evaluate::make_executor(compile::program_of_rank(options_.stages, world_.rank()), *kernels_, team_,
                                {.world = &world_,
                                 .offload_folder = offload_folder(),
                                 .time_limit = comm::time_limit(settings_.parallel.timeout_seconds)});
    run::Executor& executor = *made;
    executor.initialize(settings_.train.seed);
    samples::BatchMemory batch(share_of(executor, settings_).micro_batch, parts_of(settings_));
    RandomSamples(settings_).fill(share_of(executor, settings_).first_sample(0, 0), batch.view());
    const ClockOffset clock = clock_offset(*all_);
    StepProfiler profiler(executor, *all_, clock, true);
    std::optional<report::MeasuredTrace> trace;
    if (options_.trace) trace.emplace(executor.program(), world_.rank());
    int64_t origin = 0;
    for (int64_t step = 0; step < options_.warm_up + options_.steps; ++step) {
      if (options_.progress && world_.rank() == 0) options_.progress(step, options_.warm_up + options_.steps);
      const int64_t number = step - options_.warm_up;  // index among the measured steps
      if (number >= 0) profiler.begin();
      run_step(executor, batch, step);
      if (number < 0) continue;
      profiler.end();
      if (!trace) continue;
      if (number == 0) origin = first_of_all(profiler.times().whole.begin + clock.offset);
      trace->add({.number = number,
                  .times = profiler.times(),
                  .started = profiler.started(),
                  .waits = profiler.waits(),
                  .offset = clock.offset - origin});
    }
    return gather(profiler.take(), limits, clock, trace ? trace->take() : "");
  }

 private:
  void tell(std::string_view what) const {
    if (options_.now && world_.rank() == 0) options_.now(what);
  }

  std::filesystem::path offload_folder() const {
    const std::string& folder = settings_.parallel.offload_folder;
    return folder.empty() ? base::temporary_folder() : std::filesystem::path(folder);
  }

  Limits limits_of_all() {
    const tensor::DType dtype = tensor::dtype_from(settings_.train.dtype);
    const auto meet = [&] { all_->wait(all_->barrier()); };
    const Limits mine = kernels_->device()
                            ? measure_device_limits(*kernels_, team_, dtype, meet)
                            : measure_limits(team_, dtype, std::max(kLeastCopied, kMostCopied / local_ranks_), meet);
    const std::array<double, 3> sums = {mine.flops, mine.product_flops, mine.bytes};
    std::array<double, 3> of_all = {};
    all_->wait(all_->all_reduce(std::as_bytes(std::span(sums)), std::as_writable_bytes(std::span(of_all)),
                                tensor::DType::f64, comm::Reduction::mean));
    return {.flops = of_all[0], .product_flops = of_all[1], .bytes = of_all[2]};
  }

  void run_step(run::Executor& executor, samples::BatchMemory& batch, int64_t step) {
    kernels::Numbers numbers = {.seed = settings_.train.seed,
                                .step = step,
                                .batch_rows = compile::samples_of_pass(settings_),
                                .learning_rate = settings_.train.learning_rate};
    const samples::Share share = share_of(executor, settings_);
    all_->wait(all_->barrier());
    executor.run(program::Step::train, numbers,
                 [&](const run::Executor::Inputs& to) { evaluate::set_inputs(to, batch.view(), share.place(0)); });
  }

  int64_t first_of_all(int64_t time) {
    int64_t first = 0;
    all_->wait(all_->all_reduce(std::as_bytes(std::span(&time, 1)), std::as_writable_bytes(std::span(&first, 1)),
                                tensor::DType::i64, comm::Reduction::min));
    return first;
  }

  ProfiledRun gather(const profile::RankProfile& mine, const Limits& limits, const ClockOffset& clock,
                     const std::string& trace) {
    const std::vector<std::string> profiles = comm::texts_on_rank_0(*all_, to_json(mine));
    const std::vector<std::string> traces = comm::texts_on_rank_0(*all_, trace);
    const int64_t latest_error = -first_of_all(-clock.error);
    ProfiledRun run;
    if (world_.rank() > 0) return run;
    run.limits = limits;
    run.profile.ranks = world_.size();
    run.profile.clocks = 2e-9 * static_cast<double>(latest_error);
    for (const std::string& json : profiles) run.profile.of_ranks.push_back(profile::rank_profile_of(json, "a rank"));
    for (const std::string& part : traces) run.trace += part;
    return run;
  }

  const ProfileOptions& options_;
  const config::Settings& settings_;
  comm::World& world_;
  int64_t local_ranks_;
  std::unique_ptr<comm::Communicator> all_;
  std::unique_ptr<kernels::KernelSet> kernels_;
  base::ThreadTeam team_;
};

}  // namespace

ProfiledRun profile_run(const ProfileOptions& options, std::span<const std::unique_ptr<comm::World>> worlds) {
  require_ranks(*worlds[0], options.settings, "profile");
  require_order(*worlds[0], options.settings);
  const auto launched = launch::launched();
  const size_t local = worlds.size() > 1 || !launched ? worlds.size() : static_cast<size_t>(launched->local);
  ProfiledRun result;
  comm::run_ranks(worlds, [&](comm::World& world) {
    ProfiledRun mine = ProfiledRank(options, world, local).run();
    if (&world == worlds[0].get()) result = std::move(mine);
  });
  return result;
}

}  // namespace kintsugi::train
