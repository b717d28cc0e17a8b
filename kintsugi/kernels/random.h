// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3",
// section 3.3). A number is a pure function of (key, stream, index), so neither weights nor dropout masks depend on
// the layout, the order or the number of threads.
#pragma once

#include <math.h>

#include <array>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace kintsugi::kernels {

constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53ull * counter[0], b = 0xCD9E8D57ull * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

// The key of a named stream: FNV-1a of the name, mixed with the seed.
inline std::array<uint32_t, 2> random_key(uint64_t seed, std::string_view name) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  h ^= seed * 0x9E3779B97F4A7C15ull;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBull;
  h ^= h >> 31;
  return {static_cast<uint32_t>(h), static_cast<uint32_t>(h >> 32)};
}

// Words 4 * block .. 4 * block + 3 of a stream.
constexpr std::array<uint32_t, 4> random_block(std::array<uint32_t, 2> key, uint64_t stream, uint64_t block) {
  return philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(stream),
                 static_cast<uint32_t>(stream >> 32)},
                key);
}

constexpr uint32_t random_word(std::array<uint32_t, 2> key, uint64_t stream, uint64_t index) {
  return random_block(key, stream, index >> 2)[index & 3];
}

// The two normally distributed numbers at indices 2 * pair and 2 * pair + 1, from four words (Box, Muller 1958). A
// template so that it may be constexpr, which device compilers accept in kernels; uses functions of the global
// namespace, which they overload.
template <typename Real = double>
constexpr std::array<Real, 2> normal_pair(std::array<uint32_t, 2> key, uint64_t pair) {
  const std::array<uint32_t, 4> w = random_block(key, 0, pair);
  std::array<Real, 2> x = {};
  for (size_t i = 0; i < 2; ++i) {
    const Real u = (w[2 * i] + 0.5) * 0x1p-32, v = w[2 * i + 1] * 0x1p-32;
    x[i] = ::sqrt(-2.0 * ::log(u)) * ::cos(2.0 * std::numbers::pi_v<Real> * v);
  }
  return x;
}

// Dropout keeps a word with probability 1 - p, if it is at least this.
constexpr uint32_t dropout_threshold(double p) {
  return static_cast<uint32_t>(p * 4294967296.0);
}

}  // namespace kintsugi::kernels
