// Tables about runs, a column for each.
#pragma once

#include <span>
#include <string>

#include "kintsugi/report/report_run.h"

namespace kintsugi::report {

// What each has reached, how fast, and with how much memory.
std::string html_summary(std::span<const ReportRun> runs);

// Several runs by their last validation loss, or the loss at the end where there is none, each with what it has other
// than the best; nothing for one run.
std::string html_ranking(std::span<const ReportRun> runs);

// What differs between them, what was set, and every key.
std::string html_settings(std::span<const ReportRun> runs);

}  // namespace kintsugi::report
