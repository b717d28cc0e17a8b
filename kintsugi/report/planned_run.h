// What was known of a run before its first step, as sections of a page.
#pragma once

#include <string>

#include "kintsugi/report/report_run.h"

namespace kintsugi::report {

// Mesh and rules; what each stage holds; memory, by purpose and over a step, with its limit; the schedule, if there are
// several stages; what is sent in a step.
std::string html_planned(const PlannedRun& planned, bool with_schedule);

}  // namespace kintsugi::report
