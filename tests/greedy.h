// Compares greedy texts: equal up to the point where rounding may decide.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace kintsugi::tests {

// Tokens, and the margin of each best logit over the second.
struct Greedy {
  std::vector<int32_t> ids;
  std::vector<double> leads;
};

inline double lead_of(std::span<const float> logits) {
  double best = -std::numeric_limits<double>::infinity(), second = best;
  for (const float x : logits) {
    second = std::max(second, std::min(best, static_cast<double>(x)));
    best = std::max(best, static_cast<double>(x));
  }
  return best - second;
}

// Logits nearer than this may swap if sums are added in another order.
constexpr double kTie = 1e-4;

// The number of certain tokens: those before the first whose two best logits differ by less than kTie.
inline size_t certain(const Greedy& text) {
  return static_cast<size_t>(
      std::find_if(text.leads.begin(), text.leads.end(), [](double lead) { return !(lead >= kTie); }) -
      text.leads.begin());
}

// "" if `got` has the certain tokens of `want`, otherwise the first that differs.
inline std::string difference(const Greedy& want, std::span<const int32_t> got) {
  for (size_t i = 0; i < certain(want); ++i) {
    if (i >= got.size()) return fmt::format("only {} tokens", got.size());
    if (got[i] != want.ids[i])
      return fmt::format("token {} is {} instead of {}, which led by {:.3g}", i, got[i], want.ids[i], want.leads[i]);
  }
  return "";
}

}  // namespace kintsugi::tests
