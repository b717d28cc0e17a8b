// What was known of a run before its first step, as sections of a page.
#pragma once

#include <string>

#include "kintsugi/report/report_run.h"

namespace kintsugi::report {

// Mesh and rules; the contents of each stage; memory by purpose and over a step, with its limit; the schedule if there
// are several stages; the communication of a step.
std::string html_planned(const PlannedRun& planned, bool with_schedule);

}  // namespace kintsugi::report
