// Stochastic rounding of optimizer states that does not depend on the layout.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

// fp32 to bf16: to the number above in magnitude with the probability that keeps the mean, by the low 16 bits of
// `random`; 0 stays 0.
inline uint16_t round_stochastically(float x, uint32_t random) {
  return static_cast<uint16_t>((std::bit_cast<uint32_t>(x) + (random & 0xFFFFu)) >> 16);
}

// FNV-1a: the key of a StatePlace.
constexpr uint64_t name_hash(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

// The random words of the elements of the operands from `begin` on: word i of the stream of the step and of the name of
// the element's weight, where i is its position in the whole weight. 0 for elements of no weight.
void random_words(const KernelCall& call, int64_t begin, std::span<uint32_t> words);

}  // namespace kintsugi::kernels
