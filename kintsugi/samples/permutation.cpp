#include "kintsugi/samples/permutation.h"

#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/data/hash.h"

namespace kintsugi::samples {

Permutation::Permutation(uint64_t size, uint64_t key) : size_(size) {
  base::require(size > 0 && size <= (1ull << 62), "data", "a permutation of {}", size);
  a_ = static_cast<uint64_t>(std::sqrt(static_cast<double>(size)));
  while (a_ * a_ < size) ++a_;  // regardless of rounding in the square root: any a with a * b >= size is valid,
  while (a_ > 1 && (a_ - 1) * (a_ - 1) >= size) --a_;  // and this one is identical on every machine
  b_ = (size + a_ - 1) / a_;
  for (int round = 0; round < kRounds; ++round) keys_[round] = data::mix(key, static_cast<uint64_t>(round));
}

uint64_t Permutation::operator()(uint64_t index) const {
  base::require(index < size_, "data", "index {} of {}", index, size_);
  uint64_t left = index / b_;
  uint64_t right = index % b_;
  do {
    for (int round = 0; round < kRounds; round += 2) {
      left = (left + data::multiply_high(data::mix(keys_[round] ^ right), a_)) % a_;
      right = (right + data::multiply_high(data::mix(keys_[round + 1] ^ left), b_)) % b_;
    }
  } while (left * b_ + right >= size_);
  return left * b_ + right;
}

}  // namespace kintsugi::samples
