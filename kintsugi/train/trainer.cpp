#include "kintsugi/train/trainer.h"

#include <fmt/format.h>

#include "kintsugi/base/format.h"
#include "kintsugi/base/read_only_file.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/device/device.h"
#include "kintsugi/models/models.h"
#include "kintsugi/train/reference.h"
#include "kintsugi/train/run_folder.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::train {
namespace {

// One line per key, without the origin of its value.
std::string values_of(const config::Settings& s) {
  std::string lines;
  for (const config::Key& key : config::keys())
    lines += fmt::format("{} = {}\n", key.full_name(), config::to_toml(key.get(s)));
  return lines;
}

std::string this_binary() {
  return fmt::format("checksum {}", checkpoint::checksum_text(base::checksum_of(base::ReadOnlyFile("/proc/self/exe"))));
}

// For ranks that are processes, before any of them acts on its options.
void require_same_options(const TrainOptions& options, comm::World& world) {
  const std::unique_ptr<comm::Communicator> all = comm::group_of_all(world);
  comm::require_same(*all, "train", "binary", this_binary());
  comm::require_same(*all, "train", "configuration", values_of(options.config.settings));
  comm::require_same(*all, "train", "start", options.resume == Resume::no ? "a new run" : "a resumed run");
}

// Whether to resume a run if there is one; on rank 0.
bool resumes(const TrainOptions& options) {
  if (options.resume != Resume::if_any) return options.resume == Resume::yes;
  std::error_code error;
  return std::filesystem::exists(std::filesystem::path(options.config.settings.train.folder) / "config.toml", error);
}

// For ranks that are processes: rank 0 locks the run's folder, and all continue with the configuration found there.
std::unique_ptr<RunFolder> share_folder(TrainOptions& options, comm::World& world) {
  const std::unique_ptr<comm::Communicator> all = comm::group_of_all(world);
  options.resume = comm::of_rank_0(*all, resumes(options) ? 1 : 0) != 0 ? Resume::yes : Resume::no;
  std::unique_ptr<RunFolder> folder;
  if (world.rank() == 0) folder = std::make_unique<RunFolder>(options.config, options.resume == Resume::yes);
  const std::string text = comm::text_of_rank_0(*all, config::to_toml(options.config));
  if (values_of(options.config.settings) != values_of(config::saved_text(text, models::catalog()).settings))
    options.config = config::saved_text(text, models::catalog());
  return folder;
}

// Objects that only rank 0 has; null on the others.
struct Leader {
  const RunFolder* folder = nullptr;
  Observer* observer = nullptr;

  void note(const std::string& line) const {
    if (observer) observer->note(line);
  }
  void preparing(std::string_view what) const {
    if (observer) observer->preparing(what);
  }
};

Outcome train_rank(const TrainOptions& options, comm::World& world, bool alone, const Leader& leader) {
  Rank rank = make_rank(options.config, world,
                        {.alone = alone,
                         .resume = options.resume == Resume::yes,
                         .now = [&](std::string_view what) { leader.preparing(what); },
                         .plan = options.plan});
  if (device::Device* device = rank.kernels->device()) {
    const std::string& exchange = rank.executor->exchange();
    leader.note(
        fmt::format("device: {}{}", device->properties().name, exchange.empty() ? "" : "; ranks exchange " + exchange));
    if (const std::string why = compile::products_not_kept(rank.settings()); !why.empty())
      leader.note(
          fmt::format("warning: cannot store matmul measurements for later runs, whose bits may differ: {}; set "
                      "KINTSUGI_PRODUCTS to another file",
                      why));
  }
  leader.preparing("setting the initial values");
  Progress progress = restore(rank, options.resume == Resume::yes, [&](const std::string& line) { leader.note(line); });
  set_reference(rank, progress.step > 0, [&](std::string_view what) { leader.preparing(what); });
  leader.preparing("first step");
  std::optional<MetricsFile> metrics;
  std::optional<report::EventFile> events;
  std::optional<Metrics> interrupted;
  const bool goes_on = progress.step < rank.settings().train.steps || progress.interrupted;
  if (leader.folder) {
    leader.folder->save_config(rank.config);
    if (progress.interrupted) interrupted = read_step(leader.folder->metrics(), progress.step);
    metrics.emplace(leader.folder->metrics(), progress.step - (interrupted ? 1 : 0));
    if (rank.settings().train.event_files && goes_on) events.emplace(leader.folder->path(), progress.step);
  }
  const int64_t steps = rank.settings().train.steps;
  LoopEnd end;
  if (goes_on) {
    end = run_steps(rank,
                    {.stop = options.stop,
                     .stop_at = options.stop_at,
                     .peak_flops = options.peak_flops,
                     .begun = options.begun,
                     .folder = leader.folder,
                     .metrics = metrics ? &*metrics : nullptr,
                     .events = events ? &*events : nullptr,
                     .interrupted = interrupted ? &*interrupted : nullptr,
                     .observer = leader.observer},
                    progress);
  } else {
    leader.note(
        fmt::format("nothing to do: {} of {} steps are done; increase train.steps to continue", progress.step, steps));
  }
  return {.step = progress.step,
          .finished = progress.step >= steps,
          .reason = end.stop,
          .checkpoint = progress.checkpoint,
          .validation_loss = end.validation_loss,
          .best_validation_loss = progress.best_validation_loss};
}

}  // namespace

Outcome train(TrainOptions options, std::span<const std::unique_ptr<comm::World>> worlds, Observer& observer) {
  const bool one_process = worlds[0]->size() == static_cast<int>(worlds.size());
  if (!one_process) require_same_options(options, *worlds[0]);
  require_ranks(*worlds[0], options.config.settings);
  require_order(*worlds[0], options.config.settings);
  if (one_process) options.resume = resumes(options) ? Resume::yes : Resume::no;
  const std::unique_ptr<RunFolder> folder =
      one_process ? std::make_unique<RunFolder>(options.config, options.resume == Resume::yes)
                  : share_folder(options, *worlds[0]);
  Outcome outcome;
  const auto run = [&](comm::World& world) {
    const Leader leader = world.rank() == 0 ? Leader{.folder = folder.get(), .observer = &observer} : Leader{};
    const Outcome mine = train_rank(options, world, worlds.size() == 1, leader);
    if (&world == worlds[0].get()) outcome = mine;
  };
  try {
    comm::run_ranks(worlds, run);
  } catch (const std::exception& e) {
    try {
      if (folder) folder->save_end({.error = base::one_line(e.what(), 2000)});
    } catch (const base::UserError&) {  // the error that ended the run takes precedence
    }
    throw;
  }
  if (folder) folder->save_end({.step = outcome.step, .stop = outcome.reason});
  return outcome;
}

}  // namespace kintsugi::train
