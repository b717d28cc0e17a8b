#include "kintsugi/checkpoint/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kintsugi/base/error.h"

namespace kintsugi::checkpoint::convert_test {
namespace {

using tensor::bf16;
using tensor::DType;
using tensor::f16;

template <typename To, typename From>
To one(DType from, From x, DType to) {
  To y;
  convert(from, reinterpret_cast<const std::byte*>(&x), to, reinterpret_cast<std::byte*>(&y), 1);
  return y;
}

}  // namespace

TEST(Convert, SmallTypesSurviveEveryWayRound) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto stored = static_cast<uint16_t>(bits);
    for (const DType small : {DType::bf16, DType::f16}) {
      const auto f = one<float>(small, stored, DType::f32);
      const auto d = one<double>(small, stored, DType::f64);
      if (std::isnan(f)) {
        ASSERT_TRUE(std::isnan(d));
        ASSERT_TRUE(std::isnan(one<float>(small, one<uint16_t>(DType::f64, d, small), DType::f32)));
        continue;
      }
      ASSERT_EQ(static_cast<double>(f), d);
      ASSERT_EQ(one<uint16_t>(DType::f32, f, small), stored);
      ASSERT_EQ(one<uint16_t>(DType::f64, d, small), stored);
    }
  }
}

TEST(Convert, DoublesAreRoundedOnce) {
  // Just above the midpoint of two neighbours: through the nearest float it would be a tie, and round to even.
  EXPECT_EQ(one<uint16_t>(DType::f64, 1.0 + 0x1p-8 + 0x1p-40, DType::bf16), bf16(1.0f + 0x1p-7f).bits);
  EXPECT_EQ(one<uint16_t>(DType::f64, 1.0 + 0x1p-8, DType::bf16), bf16(1.0f).bits);
  EXPECT_EQ(one<uint16_t>(DType::f64, 1.0 + 3 * 0x1p-8 - 0x1p-40, DType::bf16), bf16(1.0f + 0x1p-7f).bits);
  EXPECT_EQ(one<uint16_t>(DType::f64, -1.0 - 0x1p-11 - 0x1p-40, DType::f16), f16(-1.0f - 0x1p-10f).bits);
  EXPECT_EQ(one<uint16_t>(DType::f64, 65519.999999999, DType::f16), f16(65504.0f).bits);
  EXPECT_EQ(one<uint16_t>(DType::f64, 65520.0, DType::f16), 0x7c00);
  EXPECT_EQ(one<uint16_t>(DType::f64, 0x1p-25, DType::f16), 0);            // a tie, to even
  EXPECT_EQ(one<uint16_t>(DType::f64, 0x1p-25 + 0x1p-70, DType::f16), 1);  // above it
  EXPECT_EQ(one<uint16_t>(DType::f64, 1e300, DType::bf16), 0x7f80);
  EXPECT_EQ(one<uint16_t>(DType::f64, -1e-300, DType::bf16), 0x8000);
  EXPECT_EQ(one<float>(DType::f64, 1.0 + 0x1p-24, DType::f32), 1.0f);
  EXPECT_EQ(one<float>(DType::f64, 1e300, DType::f32), std::numeric_limits<float>::infinity());
}

TEST(Convert, UnalignedAndWholeNumbers) {
  std::byte buffer[32] = {};
  const float x = 3.25f;
  std::memcpy(buffer + 1, &x, sizeof x);
  convert(DType::f32, buffer + 1, DType::f64, buffer + 9, 1);
  double y;
  std::memcpy(&y, buffer + 9, sizeof y);
  EXPECT_EQ(y, 3.25);
  EXPECT_TRUE(converts(DType::i64, DType::i64));
  EXPECT_FALSE(converts(DType::i64, DType::f32));
  EXPECT_THROW(convert(DType::i64, buffer, DType::i32, buffer + 8, 1), base::InternalError);
}

}  // namespace kintsugi::checkpoint::convert_test
