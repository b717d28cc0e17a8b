#include "kintsugi/evaluate/token_score.h"

#include <algorithm>
#include <cmath>

#include "kintsugi/base/error.h"

namespace kintsugi::evaluate {

TokenScore score_token(std::span<const float> logits, int32_t id, int64_t top) {
  base::require(id >= 0 && static_cast<size_t>(id) < logits.size(), "score", "token {} of {} logits", id,
                logits.size());
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - most);
  const double lse = most + std::log(sum);
  TokenScore score = {.id = id, .log_probability = static_cast<double>(logits[static_cast<size_t>(id)]) - lse};
  // Stable order of ties.
  const auto before = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  std::vector<int32_t> best;
  for (int32_t i = 0; i < static_cast<int32_t>(logits.size()) && top > 0; ++i) {
    if (std::ssize(best) == top && !before(i, best.back())) continue;
    if (std::ssize(best) == top) best.pop_back();
    best.insert(std::ranges::upper_bound(best, i, before), i);
  }
  for (const int32_t i : best)
    score.top.push_back({.id = i, .log_probability = static_cast<double>(logits[static_cast<size_t>(i)]) - lse});
  return score;
}

}  // namespace kintsugi::evaluate
