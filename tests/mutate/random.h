// Random numbers that depend only on a seed.
#pragma once

#include <cstdint>

namespace kintsugi::tests {

// SplitMix64 (Steele et al. 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t word() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t n) { return n == 0 ? 0 : word() % n; }  // 0 to n-1
  bool one_in(uint64_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

}  // namespace kintsugi::tests
