// Hashes: pseudo-random numbers that are a pure function of their keys. They decide which samples a run sees, so they
// never change: a resumed run depends on them.
#pragma once

#include <cstdint>

namespace kintsugi::data {

// A bijection of 64-bit words that spreads every input bit (the finalizer of SplitMix64, Steele et al. 2014).
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// A key made of several; the order matters.
template <typename... Rest>
constexpr uint64_t mix(uint64_t first, uint64_t second, Rest... rest) {
  return mix(mix(first) ^ (second * 0xd6e8feb86659fd93ull), static_cast<uint64_t>(rest)...);
}

// floor(a b / 2^64)
constexpr uint64_t multiply_high(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
}

}  // namespace kintsugi::data
