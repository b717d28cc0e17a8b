// Reads the folder of a run for a report.
#pragma once

#include <filesystem>
#include <vector>

#include "kintsugi/report/report_run.h"

namespace kintsugi::app {

struct ReadRun {
  report::ReportRun run;
  std::vector<std::filesystem::path> files;  // of the run, none of which may be replaced
};

// Compiles its program, to show the plan; if that is impossible, the result says why. UserError if the folder is not a
// run, or if the run has completed no step.
ReadRun read_report_run(const std::filesystem::path& folder);

}  // namespace kintsugi::app
