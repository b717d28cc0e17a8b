// A run as a report shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/profile/rank_profile.h"
#include "kintsugi/program/program.h"
#include "kintsugi/report/metrics_table.h"

namespace kintsugi::report {

// A key of the configuration.
struct Setting {
  std::string name, value;  // "train.steps", "100"
  std::string origin;       // where the value came from; "" if that is not known
  bool given = false;       // by the user: it is neither a default nor derived
};

// What was known before the first step.
struct PlannedRun {
  std::vector<program::Program> stages;
  int64_t layers = 0;                  // of the model
  std::string plan;                    // in lines
  int64_t limit_bytes = 0;             // of a rank's memory; 0: not known
  std::string limit_source;            // of which that is, or why it is not known
  std::string schedule, schedule_svg;  // of several stages: in a sentence, and as a picture
};

// Of a stage: its idle time over its busy time.
struct StageBubble {
  double planned = 0;   // tasks as long as their arithmetic, communication free
  double replayed = 0;  // the same schedule with tasks as long as they were measured
  // As measured: the step without the kernels of tasks over these, the mean of its ranks. That is the sum of the three
  // below.
  double run = 0;
  double waiting = 0;        // for other ranks
  double communication = 0;  // starting transfers, moving them on, waiting for them while they were under way
  double rest = 0;           // the update, inputs
  int rank = -1;             // for which its ranks waited longest; -1: none
};

// A step as it was measured.
struct ProfiledStep {
  profile::StepProfile profile;
  std::vector<StageBubble> bubbles = {};  // by stage; none where it has one stage, or cannot be planned
};

struct ReportRun {
  std::string name;
  std::string unit = "tokens";          // that the speed counts
  std::string model = {}, data = {};    // in words
  std::string date = {}, machine = {};  // of its last step, and on which; "" where nobody knows
  MetricsTable metrics;
  int64_t steps = 0;                   // that it is meant to do
  std::string ended = {};              // why before its last step; "" where it did not, or nobody knows
  std::vector<Setting> settings = {};  // every key, in the order of the list
  std::optional<PlannedRun> planned = {};
  std::string not_planned = {};  // why it is not there
  std::optional<ProfiledStep> measured = {};
  std::string not_measured = {};  // why there is a file and it is not shown
};

// What a reader of the page must know of what it does not show: "line 7 of metrics.jsonl is not whole ..., and is left
// out".
std::vector<std::string> warnings_of(const ReportRun& run);

}  // namespace kintsugi::report
