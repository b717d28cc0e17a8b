// The folder of a run, read repeatedly.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "kintsugi/config/settings.h"
#include "kintsugi/profile/rank_profile.h"
#include "kintsugi/report/followed_metrics.h"
#include "kintsugi/report/watch_frame.h"

namespace kintsugi::app {

// Only reads files, so the run may be on another machine that shares the file system.
class WatchedFolder {
 public:
  explicit WatchedFolder(std::filesystem::path folder);  // UserError if it is no run's

  // Reads what is new. Problems are reported in the result.
  report::WatchedRun look();

 private:
  void read_settings();
  void read_measured();

  std::filesystem::path folder_;
  config::Settings settings_;
  std::string ranks_;
  std::filesystem::file_time_type settings_time_, measured_time_ = {};
  std::optional<profile::StepProfile> measured_;
  report::FollowedMetrics metrics_;
  double grew_ = 0;  // steady seconds at which the metrics grew, as far as that is known
};

}  // namespace kintsugi::app
