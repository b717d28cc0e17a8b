#include "app/watched_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/terminal.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/index.h"
#include "kintsugi/config/axes.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/models/models.h"
#include "kintsugi/train/run_end.h"
#include "kintsugi/train/step_traces.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;

// The age of a file by this machine's clock; the file system's clock may differ.
double age_of(fs::file_time_type time) {
  return std::max(0.0, std::chrono::duration<double>(fs::file_time_type::clock::now() - time).count());
}

// "4 ranks: pipe 2, data 2"
std::string ranks_in_words(const config::Parallel& p) {
  if (p.ranks == 1) return "1 rank";
  std::vector<std::string> axes;
  for (const config::Axis* axis : config::axes_of_product())
    if (axis->size(p) > 1) axes.push_back(fmt::format("{} {}", axis->name, axis->size(p)));
  return fmt::format("{} ranks: {}", p.ranks, fmt::join(axes, ", "));
}

}  // namespace

WatchedFolder::WatchedFolder(fs::path folder) : folder_(std::move(folder)), metrics_(folder_ / "metrics.jsonl") {
  std::error_code error;
  if (!fs::is_directory(folder_, error))
    throw base::UserError("watch", "folder \"{}\" not found; name the folder of a run ([train] folder)",
                          folder_.string());
  if (!fs::exists(folder_ / checkpoint::kConfigFile, error))
    throw base::UserError("watch",
                          "\"{}\" is not a run: config.toml is missing; name the folder of a run ([train] folder)",
                          folder_.string());
  read_settings();
  metrics_.read();
  const fs::file_time_type time = fs::last_write_time(metrics_.exists() ? folder_ / "metrics.jsonl" : folder_, error);
  grew_ = steady_seconds() - (error ? 0 : age_of(time));
}

void WatchedFolder::read_settings() {
  const fs::path path = folder_ / checkpoint::kConfigFile;
  settings_time_ = fs::last_write_time(path);
  settings_ = config::load_saved(path, models::catalog()).settings;
  ranks_ = ranks_in_words(settings_.parallel);
}

// A step that was profiled since; empty if it cannot be read.
void WatchedFolder::read_measured() {
  const fs::path path = folder_ / train::kProfileFile;
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(path, error);
  if (error) {
    measured_.reset();
  } else if (time != measured_time_) {
    measured_time_ = time;
    measured_.reset();
    try {
      measured_ = profile::step_profile_of(base::read_file(path), path.string());
    } catch (const base::UserError&) {  // said by report, which shows all of it
    }
  }
}

report::WatchedRun WatchedFolder::look() {
  report::WatchedRun run = {.name = (folder_ / "").lexically_normal().parent_path().string()};
  std::error_code error;
  try {
    const fs::file_time_type time = fs::last_write_time(folder_ / checkpoint::kConfigFile, error);
    if (error)
      run.note = "its folder is gone";
    else if (time != settings_time_)
      read_settings();  // it was resumed, maybe for more steps
    if (metrics_.read()) grew_ = steady_seconds();
    read_measured();
    if (const std::optional<train::RunEnd> end = train::read_end(folder_)) {
      run.ended = in_words(*end);
      run.error = end->error;
    }
    const std::vector<checkpoint::SavedStep> saved = checkpoint::list(folder_);
    if (!saved.empty()) {
      const fs::file_time_type when = fs::last_write_time(saved.back().folder, error);
      run.saved_step = saved.back().step;
      run.saved_seconds = error ? 0 : age_of(when);
    }
  } catch (const std::exception& e) {
    run.note = base::one_line(e.what(), 60);
  }
  run.metrics = &metrics_.table();
  run.steps = settings_.train.steps;
  run.ranks = ranks_;
  run.unit = models::unit_of(settings_.model);
  run.measured = measured_ ? &*measured_ : nullptr;
  run.quiet_seconds = steady_seconds() - grew_;
  run.begun_seconds = age_of(settings_time_);
  run.save_every = settings_.checkpoint.every;
  run.save_every_minutes = settings_.checkpoint.every_minutes;
  return run;
}

}  // namespace kintsugi::app
