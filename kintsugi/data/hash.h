// Hashes: pseudo-random numbers as pure functions of their keys. They determine which samples a run sees, so they must
// never change: resumed runs depend on them.
#pragma once

#include <cstdint>

namespace kintsugi::data {

// A bijective 64-bit mixer with full avalanche (the finalizer of SplitMix64, Steele et al. 2014).
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Combines several keys; order matters.
template <typename... Rest>
constexpr uint64_t mix(uint64_t first, uint64_t second, Rest... rest) {
  return mix(mix(first) ^ (second * 0xd6e8feb86659fd93ull), static_cast<uint64_t>(rest)...);
}

// floor(a b / 2^64)
constexpr uint64_t multiply_high(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
}

}  // namespace kintsugi::data
