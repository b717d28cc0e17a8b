// What a sweep has found: a table as CSV and as text, and an HTML page with pictures.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kintsugi/report/metrics_table.h"
#include "kintsugi/sweep/spec.h"
#include "kintsugi/sweep/trials.h"

namespace kintsugi::sweep {

std::string trial_name(int64_t trial);  // "run_007"

// Best first: place, run, the values, steps, the measure, failures, why it was given up.
std::vector<std::vector<std::string>> result_rows(const Sweep& sweep);
std::vector<std::string> result_head(const Spec& spec, const Sweep& sweep);
std::string result_csv(const Spec& spec, const Sweep& sweep);

// Every run as a line across one axis per key and one for the measure; the better, the darker. An SVG.
std::string parallel_coordinates(const Spec& spec, const Sweep& sweep);

// The page: the table, parallel coordinates, the best measure over the steps spent, and the curves of all runs.
// `metrics`: of each trial; without lines for one that has not begun.
std::string sweep_page(const Spec& spec, const Sweep& sweep, std::span<const report::MetricsTable> metrics);

}  // namespace kintsugi::sweep
