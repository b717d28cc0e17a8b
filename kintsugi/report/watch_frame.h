// The screen of `kintsugi watch`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/profile/rank_profile.h"
#include "kintsugi/report/metrics_table.h"
#include "kintsugi/report/text_canvas.h"

namespace kintsugi::report {

// A run as seen through its files. Seconds are by the observer's clock.
struct WatchedRun {
  std::string name;  // its folder
  const MetricsTable* metrics = nullptr;
  int64_t steps = 0;            // planned
  std::string ranks = {};       // "4 ranks: pipe 2, data 2"
  std::string unit = "tokens";  // unit of the throughput
  // The last step measured on all ranks; null: none.
  const profile::StepProfile* measured = nullptr;
  double quiet_seconds = 0;                // since metrics.jsonl grew
  std::optional<int64_t> saved_step = {};  // of the newest checkpoint
  double saved_seconds = 0;                // since then
  double begun_seconds = 0;                // since the run was started or resumed
  int64_t save_every = 0;                  // steps; 0: not by steps
  double save_every_minutes = 0;           // 0: not by time
  std::string ended = {};                  // "stopped by a signal"; "" while it is running, as far as the files tell
  std::string error = {};                  // that ended it
  std::string note = {};                   // other remarks on its files
};

struct WatchLook {
  int columns = 80, rows = 24;
  Characters characters = Characters::unicode;
  bool colour = false;
  std::string last_row = {};  // how to quit, or ""
};

// At most `rows` lines of at most `columns` characters. Where space is short, omits first the last steps, then the
// ranks, then the text, then all curves except the loss.
std::vector<std::string> watch_frame(const WatchedRun& run, const WatchLook& look);

}  // namespace kintsugi::report
