// A run as shown by a report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/profile/rank_profile.h"
#include "kintsugi/program/program.h"
#include "kintsugi/report/metrics_table.h"
#include "kintsugi/report/predictions.h"

namespace kintsugi::report {

// A key of the configuration.
struct Setting {
  std::string name, value;  // "train.steps", "100"
  std::string origin;       // where the value came from; "" if unknown
  bool given = false;       // by the user: neither default nor derived
};

// What was known before the first step.
struct PlannedRun {
  std::vector<program::Program> stages;
  int64_t layers = 0;                  // of the model
  std::string plan;                    // in lines
  int64_t limit_bytes = 0;             // of a rank's memory; 0: unknown
  std::string limit_source;            // the source of the limit, or why it is unknown
  std::string schedule, schedule_svg;  // for several stages: as a sentence and as a picture
};

// A stage's idle time divided by its busy time.
struct StageBubble {
  double planned = 0;   // task durations proportional to their arithmetic, free communication
  double replayed = 0;  // the same schedule with measured task durations
  // As measured: the step time minus the kernel time of tasks, divided by that kernel time, averaged over the stage's
  // ranks; the sum of the three below.
  double run = 0;
  double waiting = 0;        // for other ranks
  double communication = 0;  // starting transfers, progressing them, and waiting for them while in flight
  double rest = 0;           // update, inputs
  int rank = -1;             // for which its ranks waited longest; -1: none
};

// A measured step.
struct ProfiledStep {
  profile::StepProfile profile;
  std::vector<StageBubble> bubbles = {};  // by stage; empty for a single stage, or if it cannot be planned
};

struct ReportRun {
  std::string name;
  std::string unit = "tokens";          // unit of the throughput
  std::string loss_unit = "nats";       // "" if the loss has that of the data
  std::string model = {}, data = {};    // in words
  std::string date = {}, machine = {};  // of its last step; "" if unknown
  MetricsTable metrics;
  int64_t steps = 0;                   // planned number of steps
  std::string ended = {};              // why it ended early; "" if it did not, or if unknown
  std::vector<Setting> settings = {};  // every key, in the order of the list
  std::optional<PlannedRun> planned = {};
  std::string not_planned = {};  // why it is missing
  std::optional<ProfiledStep> measured = {};
  std::string not_measured = {};  // why an existing file is not shown
  std::optional<Predictions> predictions = {};
  std::string not_predicted = {};  // why an existing file is not shown
};

// Warnings on what the page omits: "line 7 of metrics.jsonl is not whole ..., and is left out".
std::vector<std::string> warnings_of(const ReportRun& run);

}  // namespace kintsugi::report
