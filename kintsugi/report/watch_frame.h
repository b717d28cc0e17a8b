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

// A run as its files show it. Seconds are of the clock of the one who looks.
struct WatchedRun {
  std::string name;  // its folder
  const MetricsTable* metrics = nullptr;
  int64_t steps = 0;            // to do
  std::string ranks = {};       // "4 ranks: pipe 2, data 2"
  std::string unit = "tokens";  // that the speed counts
  // The step that was measured last on all of them; null: none was.
  const profile::StepProfile* measured = nullptr;
  double quiet_seconds = 0;                // since metrics.jsonl grew
  std::optional<int64_t> saved_step = {};  // of the newest checkpoint
  double saved_seconds = 0;                // since then
  double begun_seconds = 0;                // since the run was started, or resumed
  int64_t save_every = 0;                  // steps; 0: not by steps
  double save_every_minutes = 0;           // 0: not by time
  std::string ended = {};                  // "stopped by a signal"; "" while it is under way, as far as files say
  std::string error = {};                  // that ended it
  std::string note = {};                   // what else there is to say of its files
};

struct WatchLook {
  int columns = 80, rows = 24;
  Characters characters = Characters::unicode;
  bool colour = false;
  std::string last_row = {};  // how to end, or ""
};

// At most `rows` lines of at most `columns` characters. What there is no room for is left out: first the last steps,
// then the ranks, then the text, then all curves but that of the loss.
std::vector<std::string> watch_frame(const WatchedRun& run, const WatchLook& look);

}  // namespace kintsugi::report
