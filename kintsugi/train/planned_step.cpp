#include "kintsugi/train/planned_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kintsugi/base/format.h"

namespace kintsugi::train {

std::optional<std::string> PlannedStep::add(double seconds) {
  if (!planned_ || steps_ == kWarmUp + kMeasured) return std::nullopt;
  if (++steps_ > kWarmUp) measured_.push_back(seconds);
  if (steps_ < kWarmUp + kMeasured) return std::nullopt;
  std::ranges::nth_element(measured_, measured_.begin() + kMeasured / 2);
  const double median = measured_[kMeasured / 2], longer = 100 * (median / *planned_ - 1);
  return fmt::format("a step takes {}, {} was planned on {}: {:.1f}% {}", base::format_seconds(median),
                     base::format_seconds(*planned_), cluster_, std::abs(longer), longer < 0 ? "less" : "more");
}

}  // namespace kintsugi::train
