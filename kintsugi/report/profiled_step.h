// The section of a page on a measured step.
#pragma once

#include <span>
#include <string>

#include "kintsugi/report/report_run.h"

namespace kintsugi::report {

// Shows where the time of the step went, by rank and by operation; for several stages the planned and the executed
// schedule and the bubble; the transfers. Returns HTML; the run must have been measured. `operations`: those with a
// colour on the page.
std::string html_measured(const ReportRun& run, std::span<const std::string> operations);

}  // namespace kintsugi::report
