// What models wrote while they were trained.
#pragma once

#include <span>
#include <string>

#include "kintsugi/report/report_run.h"

namespace kintsugi::report {

// The texts of the last step of each run, and those of earlier ones, folded away; "" if no run has any. Of many steps
// as many as a reader may look at, with the first and the last; of long texts the beginning.
std::string html_texts(std::span<const ReportRun> runs);

}  // namespace kintsugi::report
