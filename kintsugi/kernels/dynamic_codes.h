// Dynamic 8-bit quantization (Dettmers et al. 2022, section 2.2): numbers from -1 to 1, or from 0 to 1, whose exponents
// and fractions share the bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace kintsugi::kernels {

class DynamicCodes {
 public:
  explicit DynamicCodes(bool has_sign);

  // Code 0 is the number 0.
  double number(uint8_t code) const { return sorted_[static_cast<uint8_t>(code + zero_)]; }
  // The code of the nearest number; of two, the smaller.
  uint8_t nearest(double x) const {
    const auto above = std::ranges::lower_bound(middles_, x);
    return static_cast<uint8_t>(above - middles_.begin() - zero_);
  }

 private:
  std::array<double, 256> sorted_ = {};
  std::array<double, 255> middles_ = {};  // between each number and the next
  int zero_ = 0;                          // index of 0
};

// Of first moments, and of second moments.
const DynamicCodes& signed_codes();
const DynamicCodes& unsigned_codes();

}  // namespace kintsugi::kernels
