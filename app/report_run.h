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

// Compiles its program, to show what was planned; where that cannot be done, the run says why. UserError if the folder
// is no run's, or if the run has done no step.
ReadRun read_report_run(const std::filesystem::path& folder);

}  // namespace kintsugi::app
