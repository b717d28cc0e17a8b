// The texts that models generated during training.
#pragma once

#include <span>
#include <string>

#include "kintsugi/report/report_run.h"

namespace kintsugi::report {

// The texts of each run's last step, and those of earlier ones, collapsed; "" if there are none. Of many steps, shows a
// readable number, including the first and the last; shortens long texts to their beginning.
std::string html_texts(std::span<const ReportRun> runs);

}  // namespace kintsugi::report
