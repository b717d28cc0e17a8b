// The curves of runs, overlaid.
#pragma once

#include <span>
#include <string>

#include "kintsugi/report/metrics_table.h"

namespace kintsugi::report {

struct MeasuredRun {
  std::string name;
  std::string unit = "tokens";  // unit of the throughput
  const MetricsTable* metrics = nullptr;
  std::string loss_unit = "nats";
};

// Charts loss, validation, the load of experts, learning rate, gradient norm, throughput, and every measure unknown
// here; thinned, preserving extremes. If runs differ in tokens per step, also charts the loss by tokens.
std::string html_charts(std::span<const MeasuredRun> runs);

}  // namespace kintsugi::report
