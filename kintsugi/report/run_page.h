// The page that `kintsugi report` writes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kintsugi/report/report_run.h"

namespace kintsugi::report {

// A self-contained HTML page on one or more runs. `writer`: the program and its version.
std::string run_page(std::span<const ReportRun> runs, std::string_view writer);

}  // namespace kintsugi::report
