// The section of a page about a step that was measured.
#pragma once

#include <span>
#include <string>

#include "kintsugi/report/report_run.h"

namespace kintsugi::report {

// Where the time of the step went, of each rank and by operation; of several stages the schedule as planned and as run,
// and the bubble; the transfers. HTML; the run was measured. `operations`: those that have a colour on the page.
std::string html_measured(const ReportRun& run, std::span<const std::string> operations);

}  // namespace kintsugi::report
