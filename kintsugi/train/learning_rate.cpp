#include "kintsugi/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kintsugi::train {

double learning_rate(const config::Train& t, int64_t step) {
  double scale = 1.0;
  if (t.scale_learning_rate != "none") scale = static_cast<double>(t.global_batch) / static_cast<double>(t.base_batch);
  if (t.scale_learning_rate == "sqrt") scale = std::sqrt(scale);
  const double peak = scale * t.learning_rate, least = scale * t.min_learning_rate;

  const int64_t warmup = std::max<int64_t>(t.warmup_steps, 0);  // -1 if nothing was resolved
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  if (t.decay == "constant") return peak;
  if (t.decay == "step")
    return std::max(least, peak * std::pow(t.decay_factor, static_cast<double>(step / t.decay_every)));
  if (t.decay == "inverse_sqrt") {
    const double origin = static_cast<double>(warmup + 1);  // the step after warm-up has the full rate
    return std::max(least, peak * std::sqrt(origin / std::max(origin, static_cast<double>(step + 1))));
  }
  if (step >= t.decay_steps) return least;
  const double done = static_cast<double>(step - warmup) / static_cast<double>(t.decay_steps - warmup);
  const double share = t.decay == "linear" ? 1.0 - done : 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return least + share * (peak - least);
}

}  // namespace kintsugi::train
