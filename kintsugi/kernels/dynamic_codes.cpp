#include "kintsugi/kernels/dynamic_codes.h"

#include <cmath>

namespace kintsugi::kernels {

// Decades 1e-6 to 1, each with twice the fractions of the one below; fractions are the middles of equal parts of [0.1,
// 1].
DynamicCodes::DynamicCodes(bool has_sign) {
  constexpr int kDecades = 7;
  size_t count = 0;
  for (int decade = 0; decade < kDecades; ++decade) {
    const int fractions = (has_sign ? 1 : 2) << decade;
    for (int i = 0; i < fractions; ++i) {
      const double middle = 0.1 + 0.9 * (i + 0.5) / fractions, x = std::pow(10, decade - kDecades + 1) * middle;
      sorted_[count++] = x;
      if (has_sign) sorted_[count++] = -x;
    }
  }
  sorted_[count++] = 0.0;
  sorted_[count++] = 1.0;
  std::ranges::sort(sorted_);
  for (size_t i = 0; i < middles_.size(); ++i) middles_[i] = (sorted_[i] + sorted_[i + 1]) / 2;
  zero_ = static_cast<int>(std::ranges::lower_bound(sorted_, 0.0) - sorted_.begin());
}

const DynamicCodes& signed_codes() {
  static const DynamicCodes codes(true);
  return codes;
}

const DynamicCodes& unsigned_codes() {
  static const DynamicCodes codes(false);
  return codes;
}

}  // namespace kintsugi::kernels
