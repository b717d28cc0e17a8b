#include "kintsugi/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kintsugi/config/batch_warmup.h"

namespace kintsugi::train {

namespace {

constexpr double kOneCycleStart = 25.0;  // the peak over the first learning rate

}  // namespace

double learning_rate(const config::Train& t, int64_t step) {
  double scale = 1.0;
  if (t.scale_learning_rate != "none")
    scale = static_cast<double>(config::batch_of_step(t, step)) / static_cast<double>(t.base_batch);
  if (t.scale_learning_rate == "sqrt") scale = std::sqrt(scale);
  const double peak = scale * t.learning_rate, least = scale * t.min_learning_rate;

  const int64_t warmup = std::max<int64_t>(t.warmup_steps, 0);  // -1 if nothing was resolved
  const auto cosine = [](double done) { return 0.5 * (1.0 + std::cos(std::numbers::pi * done)); };  // from 1 to 0
  if (step < warmup && t.decay == "one_cycle") {
    const double first = peak / kOneCycleStart;
    return peak + cosine(static_cast<double>(step) / static_cast<double>(warmup)) * (first - peak);
  }
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  if (t.decay == "constant") return peak;
  if (t.decay == "step")
    return std::max(least, peak * std::pow(t.decay_factor, static_cast<double>(step / t.decay_every)));
  if (t.decay == "inverse_sqrt") {
    const double origin = static_cast<double>(warmup + 1);  // the step after warm-up has the full rate
    return std::max(least, peak * std::sqrt(origin / std::max(origin, static_cast<double>(step + 1))));
  }
  if (step >= t.decay_steps) return least;
  const int64_t begin = t.decay == "wsd" ? std::max(warmup, t.decay_steps - t.cooldown_steps) : warmup;
  if (step < begin) return peak;
  const double done = static_cast<double>(step - begin) / static_cast<double>(t.decay_steps - begin);
  const double share = t.decay == "linear" || t.decay == "wsd" ? 1.0 - done : cosine(done);
  return least + share * (peak - least);
}

}  // namespace kintsugi::train
