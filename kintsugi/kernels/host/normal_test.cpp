#include "kintsugi/kernels/host/normal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "kintsugi/kernels/random.h"

namespace kintsugi::kernels::host::normal_test {
namespace {

float alone(std::array<uint32_t, 2> key, uint64_t index, double scale) {
  return static_cast<float>(scale * normal_pair(key, index / 2)[index % 2]);
}

// KINTSUGI_NORMALS sets the count.
TEST(DrawNormal, HasTheBitsOfThoseDrawnAlone) {
  const char* asked = std::getenv("KINTSUGI_NORMALS");
  const size_t count = asked == nullptr ? 300001 : std::strtoull(asked, nullptr, 10);
  for (const double scale : {0.02, 1.0, 0x1p-140}) {  // the last: in part below the least normal number of fp32
    const std::array<uint32_t, 2> key = random_key(7, "weight");
    for (const uint64_t first : {uint64_t{0}, uint64_t{3}, (uint64_t{1} << 33) - 1001}) {  // over a carry of blocks
      std::vector<float> x(count);
      draw_normal(key, first, scale, x);
      size_t differ = 0;
      for (size_t i = 0; i < count; ++i)
        differ +=
            std::signbit(x[i]) != std::signbit(alone(key, first + i, scale)) || x[i] != alone(key, first + i, scale);
      EXPECT_EQ(differ, 0u) << scale << " from " << first;
    }
  }
}

// Among about 4 billion numbers, two that AVX-512 rounds to a different fp32.
TEST(DrawNormal, WhatVectorsRoundOtherwiseIsDrawnAlone) {
  const std::array<uint32_t, 2> key = random_key(7, "weight");
  for (const uint64_t index : {uint64_t{341450562}, uint64_t{2288521049}}) {
    std::vector<float> x(128);
    draw_normal(key, index - 50, 0.02, x);
    EXPECT_EQ(x[50], alone(key, index, 0.02));
  }
}

TEST(DrawNormal, WritesWhatWasAskedFor) {
  const std::array<uint32_t, 2> key = random_key(1, "w");
  for (const uint64_t first : {0, 1, 2, 5})
    for (size_t count = 0; count < 70; ++count) {
      std::vector<float> x(count + 1, 99);
      draw_normal(key, first, 1, std::span(x).first(count));
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(x[i], alone(key, first + i, 1));
      EXPECT_EQ(x[count], 99);
    }
}

}  // namespace
}  // namespace kintsugi::kernels::host::normal_test
