// The curves of runs, laid over each other.
#pragma once

#include <span>
#include <string>

#include "kintsugi/report/metrics_table.h"

namespace kintsugi::report {

struct MeasuredRun {
  std::string name;
  std::string unit = "tokens";  // that the speed counts
  const MetricsTable* metrics = nullptr;
};

// Loss, validation, learning rate, gradient norm, speed, and every measure that is not known here; thinned, with the
// extremes kept. If runs have steps of different numbers of tokens, also the loss by tokens.
std::string html_charts(std::span<const MeasuredRun> runs);

}  // namespace kintsugi::report
