// A pseudo-random permutation of any size in constant memory.
#pragma once

#include <array>
#include <cstdint>

namespace kintsugi::samples {

// A bijection of [0, size), size >= 1, selected by `key`: a Feistel network over pairs of digits (Luby and Rackoff
// 1988) on a domain a x b slightly above `size`, applied repeatedly until the result is in range (cycle walking, Black
// and Rogaway 2002). Identical on every machine; must never change.
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t key);

  uint64_t size() const { return size_; }
  uint64_t operator()(uint64_t index) const;

 private:
  static constexpr int kRounds = 8;

  uint64_t size_;
  uint64_t a_;  // the domain: left digit below a_, right digit below b_
  uint64_t b_;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace kintsugi::samples
