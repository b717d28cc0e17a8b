// The results of a sweep: a table as CSV and text, and an HTML page with pictures.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kintsugi/report/metrics_table.h"
#include "kintsugi/sweep/spec.h"
#include "kintsugi/sweep/trials.h"

namespace kintsugi::sweep {

std::string trial_name(int64_t trial);  // "run_007"

// Best first: place, run, values, steps, measure, failures, why it was given up.
std::vector<std::vector<std::string>> result_rows(const Sweep& sweep);
std::vector<std::string> result_head(const Spec& spec, const Sweep& sweep);
std::string result_csv(const Spec& spec, const Sweep& sweep);

// Returns an SVG with a line per run across one axis per key and one for the measure; better runs are darker.
std::string parallel_coordinates(const Spec& spec, const Sweep& sweep);

// The page: the table, parallel coordinates, the best measure by total steps, and the curves of all runs. `metrics`:
// per trial; empty for one that has not begun.
std::string sweep_page(const Spec& spec, const Sweep& sweep, std::span<const report::MetricsTable> metrics);

}  // namespace kintsugi::sweep
