#include "kintsugi/samples/mixture.h"

#include <cmath>
#include <numeric>

#include "kintsugi/base/error.h"

namespace kintsugi::samples {
namespace {

// round(n f / 2^64): how many of the first n samples go left.
uint64_t share_of(uint64_t n, uint64_t fraction) {
  using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(n) * fraction + (static_cast<Wide>(1) << 63)) >> 64);
}

}  // namespace

Mixture::Mixture(std::span<const double> weights) : num_sources_(weights.size()) {
  base::require(!weights.empty(), "data", "a mixture of nothing");
  for (const double weight : weights) {
    if (!(weight > 0) || !std::isfinite(weight)) {
      throw base::UserError("data", "a weight of {} in a mixture; weights are positive numbers", weight);
    }
  }
  root_ = build(weights, 0);
}

int Mixture::build(std::span<const double> weights, size_t first) {
  if (weights.size() == 1) return -1 - static_cast<int>(first);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  // The cut closest to two halves.
  size_t cut = 1;
  double left = weights[0];
  while (cut + 1 < weights.size() && std::abs(2 * (left + weights[cut]) - total) <= std::abs(2 * left - total)) {
    left += weights[cut++];
  }
  const double right = std::accumulate(weights.begin() + static_cast<std::ptrdiff_t>(cut), weights.end(), 0.0);
  const double fraction = std::ldexp(left / (left + right), 64);
  const auto node = static_cast<int>(nodes_.size());
  // A weight so large that nothing remains for the other side rounds up to 2^64, which uint64 cannot represent.
  nodes_.push_back({fraction >= 0x1p64 ? ~0ull : static_cast<uint64_t>(fraction), 0, 0});
  const int left_child = build(weights.first(cut), first);
  const int right_child = build(weights.subspan(cut), first + cut);
  nodes_[static_cast<size_t>(node)].left = left_child;
  nodes_[static_cast<size_t>(node)].right = right_child;
  return node;
}

Mixture::Place Mixture::locate(uint64_t sample) const {
  int at = root_;
  while (at >= 0) {
    const Node& node = nodes_[static_cast<size_t>(at)];
    const uint64_t before = share_of(sample, node.left_fraction);
    const bool goes_left = share_of(sample + 1, node.left_fraction) > before;
    sample = goes_left ? before : sample - before;
    at = goes_left ? node.left : node.right;
  }
  return {static_cast<size_t>(-1 - at), sample};
}

}  // namespace kintsugi::samples
