// Tables of runs, one column each.
#pragma once

#include <span>
#include <string>

#include "kintsugi/report/report_run.h"

namespace kintsugi::report {

// Progress, throughput and memory of each run.
std::string html_summary(std::span<const ReportRun> runs);

// Ranks several runs by last validation loss, or final loss if there is none, with each run's differences from the
// best; empty for a single run.
std::string html_ranking(std::span<const ReportRun> runs);

// The last values of evaluation tasks, a row for each metric of a task and a column for each run; empty without any.
std::string html_tasks(std::span<const ReportRun> runs);

// Differences between the runs, settings given by the user, and every key.
std::string html_settings(std::span<const ReportRun> runs);

}  // namespace kintsugi::report
