#include "app/report_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <array>
#include <ctime>
#include <thread>
#include <utility>

#include "app/measured_bubble.h"
#include "app/model_in_words.h"
#include "app/program_of.h"
#include "app/program_schedule.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/checkpoint/index.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/models/models.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/plan/schedule_picture.h"
#include "kintsugi/train/run_end.h"
#include "kintsugi/train/run_files.h"
#include "kintsugi/train/run_folder.h"
#include "kintsugi/train/step_traces.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostTasks = 1500;  // of a picture of a schedule

std::vector<report::Setting> settings_of(const config::Settings& settings, const std::string& toml) {
  const std::vector<std::string> origins = config::written_origins(toml, settings);
  std::vector<report::Setting> list;
  for (size_t i = 0; i < config::keys().size(); ++i) {
    const config::Key& key = config::keys()[i];
    list.push_back({.name = key.full_name(),
                    .value = to_toml(key.get(settings)),
                    .origin = origins[i],
                    .given = config::says_given(origins[i])});
  }
  return list;
}

std::string in_words(const compile::MemoryLimit& limit) {
  using Source = compile::MemoryLimit::Source;
  if (limit.source == Source::memory_per_rank) return "as [parallel] memory_per_rank says";
  const std::string_view whose = limit.source == Source::machine ? "this machine" : "this control group";
  return limit.ranks == 1 ? fmt::format("the memory of {}", whose)
                          : fmt::format("the memory of {} over {} ranks", whose, limit.ranks);
}

std::string schedule_in_words(const plan::Schedule& schedule, const plan::Timeline& timeline) {
  std::vector<std::string> bubbles;
  for (int s = 0; s < schedule.stages; ++s) bubbles.push_back(fmt::format("{:.1f}%", 100 * plan::bubble(timeline, s)));
  return fmt::format(
      "Durations are proportional to FLOPs, without communication. Bubble of each stage (idle over busy time): {}.",
      fmt::join(bubbles, ", "));
}

// Tasks as long as their arithmetic, in a unit in which the step is no long number.
void draw_schedule(const config::Settings& s, report::PlannedRun& planned) {
  constexpr std::array<std::pair<double, std::string_view>, 4> kUnits = {
      {{1e9, "Gflop"}, {1e12, "Tflop"}, {1e15, "Pflop"}, {1e18, "Eflop"}}};
  const plan::Schedule schedule = schedule_of(planned.stages, s);
  const auto in = [&](double unit) { return plan::timeline(schedule, costs_of(schedule, planned.stages, unit)); };
  size_t unit = 0;
  while (unit + 1 < kUnits.size() && in(kUnits[unit].first).length >= 1e4) ++unit;
  const plan::Timeline timeline = in(kUnits[unit].first);
  planned.schedule = schedule_in_words(schedule, timeline);
  planned.schedule_svg =
      plan::svg_picture(schedule, timeline, kUnits[unit].second, kMostTasks, model_in_words(s.model));
}

// A saved configuration is not checked when it is read, so it is here, as `plan` does.
void plan_run(const fs::path& config, report::ReportRun& run) {
  const int64_t cores = train::cores_of_all(base::usable_cores(), std::thread::hardware_concurrency());
  const config::Settings s = config::load(config, models::catalog(), {}, cores).settings;
  report::PlannedRun planned = {.stages = programs_of(s),
                                .layers = s.model.layers,
                                .plan = plan::print(compile::plan_of(s)),
                                .limit_source = {},
                                .schedule = {},
                                .schedule_svg = {}};
  // Ranks of one clock were threads of one machine, however few cores that has.
  const bool one_machine = run.measured && run.measured->profile.clocks == 0;
  const auto limit = one_machine ? compile::memory_limit(s, train::machine_of(s)) : memory_limit_of(s);
  planned.limit_bytes = limit ? limit->bytes : 0;
  planned.limit_source = limit ? in_words(*limit)
                               : "[parallel] memory_per_rank is not set, and there are more ranks than this machine "
                                 "has cores";
  if (planned.stages.size() > 1) draw_schedule(s, planned);
  run.planned = std::move(planned);
  if (run.measured && run.planned->stages.size() > 1 && run.measured->profile.ranks == s.parallel.ranks)
    run.measured->bubbles = stage_bubbles(run.planned->stages, s, run.measured->profile);
}

// None where the run has not measured a step yet.
void read_measured(const fs::path& file, report::ReportRun& run) {
  std::error_code error;
  if (!fs::exists(file, error)) return;
  try {
    run.measured = report::ProfiledStep{.profile = profile::step_profile_of(base::read_file(file), file.string())};
  } catch (const base::UserError& damaged) {
    run.not_measured = base::one_line(damaged.what());
  }
}

// None where no images were classified for the page.
void read_predicted(const fs::path& file, report::ReportRun& run) {
  std::error_code error;
  if (!fs::exists(file, error)) return;
  try {
    run.predictions = report::read_predictions(file.string(), base::read_file(file));
  } catch (const base::UserError& damaged) {
    run.not_predicted = base::one_line(damaged.what());
  }
}

// Of people's interest alone: a damaged file says nothing.
void read_end_of(const fs::path& folder, report::ReportRun& run) {
  try {
    const std::optional<train::RunEnd> end = train::read_end(folder);
    if (!end) return;
    run.ended = in_words(*end);
    if (!end->error.empty()) run.ended += ": " + end->error;
  } catch (const base::UserError&) {
  }
}

}  // namespace

namespace {

// "2026-11-28 22:10", of its last step.
std::string date_of(const fs::path& metrics) {
  struct stat status = {};
  if (::stat(metrics.c_str(), &status) != 0) return "";
  std::tm local = {};
  ::localtime_r(&status.st_mtime, &local);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  return text;
}

// As the run wrote it below its configuration.
std::string machine_in(const std::string& config) {
  const size_t at = config.rfind(train::kMachineLine);
  if (at == config.npos) return "";
  const size_t begin = at + train::kMachineLine.size();
  return config.substr(begin, config.find('\n', begin) - begin);
}

}  // namespace

ReadRun read_report_run(const fs::path& folder) {
  const fs::path config = folder / checkpoint::kConfigFile, metrics = folder / "metrics.jsonl";
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw base::UserError("report", "folder \"{}\" not found; name the folder of a run ([train] folder)",
                          folder.string());
  if (!fs::exists(config, error))
    throw base::UserError("report",
                          "\"{}\" is not a run: config.toml is missing; name the folder of a run ([train] folder)",
                          folder.string());
  config::Settings settings = config::load_saved(config, models::catalog()).settings;
  ReadRun read = {.run = {.name = (folder / "").lexically_normal().parent_path().string(),
                          .metrics = {},
                          .steps = settings.train.steps,
                          .settings = settings_of(settings, base::read_file(config))},
                  .files = {}};
  read.run.unit = models::unit_of(settings.model);
  const config::Objective objective = config::objective(settings.model);
  if (objective == config::Objective::numbers || objective == config::Objective::fields) read.run.loss_unit = "";
  read.run.model = model_in_words(settings.model);
  if (!settings.data.train.empty()) read.run.data = settings.data.train[0].path;
  read.run.date = date_of(metrics);
  read.run.machine = machine_in(base::read_file(config));
  settings.train.folder = folder.string();  // it may have been moved
  read.files = train::files_of(settings);
  if (!fs::exists(metrics, error))
    throw base::UserError("report", "\"{}\" does not exist; the run has not completed a step yet", metrics.string());
  read.run.metrics = report::read_metrics(metrics);
  if (read.run.metrics.num_steps == 0)
    throw base::UserError("report", "\"{}\" has no step: {}; the run has not completed a step yet", metrics.string(),
                          read.run.metrics.left_out.empty() ? "it is empty" : read.run.metrics.left_out[0]);
  read_measured(folder / train::kProfileFile, read.run);
  read_predicted(folder / report::kPredictionsFile, read.run);
  read_end_of(folder, read.run);
  try {
    plan_run(config, read.run);
  } catch (const base::UserError& refused) {
    read.run.not_planned = base::one_line(refused.what());
  }
  return read;
}

}  // namespace kintsugi::app
