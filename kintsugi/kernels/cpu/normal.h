// Normal numbers, many at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace kintsugi::kernels::cpu {

// to[i] = `scale` times the number at index `first + i` of the key, as kernels/random.h draws it, rounded to fp32: the
// bits of the one that is drawn alone.
void draw_normal(std::array<uint32_t, 2> key, uint64_t first, double scale, std::span<float> to);

}  // namespace kintsugi::kernels::cpu
