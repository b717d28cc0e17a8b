// Normally distributed numbers, in bulk.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace kintsugi::kernels::host {

// `scale` times the number at an index of the key, as kernels/random.h draws it, rounded to fp32.
float draw_normal(std::array<uint32_t, 2> key, uint64_t index, double scale);
// The same bits, to[i] at index `first + i`.
void draw_normal(std::array<uint32_t, 2> key, uint64_t first, double scale, std::span<float> to);

}  // namespace kintsugi::kernels::host
