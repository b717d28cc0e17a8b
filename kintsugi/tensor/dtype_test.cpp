#include "kintsugi/tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kintsugi/base/error.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::tensor::dtype_test {

TEST(DType, NamesRoundTrip) {
  for (DType d :
       {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u16, DType::u8, DType::i8})
    EXPECT_EQ(dtype_from(name_of(d)), d);
  EXPECT_THROW(dtype_from("float"), base::UserError);
}

// Every f16 survives the conversion to f32 and back, and ties round to even.
TEST(DType, HalfIsExactAndRoundsToEven) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    f16 x;
    x.bits = static_cast<uint16_t>(bits);
    const float wide = static_cast<float>(x);
    if (std::isnan(wide)) continue;
    EXPECT_EQ(f16(wide).bits, x.bits) << bits;
  }
  EXPECT_EQ(f16(2049.0f).bits, f16(2048.0f).bits);
  EXPECT_EQ(f16(2051.0f).bits, f16(2052.0f).bits);
  EXPECT_EQ(static_cast<float>(f16(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(f16(65520.0f))));
  EXPECT_EQ(static_cast<float>(f16(0x1p-25f)), 0.0f);
  EXPECT_EQ(static_cast<float>(f16(0x1.8p-24f)), 0x1p-23f);
}

TEST(DType, BrainFloatRoundsToEvenAndKeepsNaN) {
  EXPECT_EQ(static_cast<float>(bf16(1.00390625f)), 1.0f);
  EXPECT_EQ(static_cast<float>(bf16(1.01171875f)), 1.015625f);
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isinf(static_cast<float>(bf16(std::numeric_limits<float>::max()))));
}

TEST(Shape, NamesSizesStrides) {
  const Shape x = {{"batch", 4}, {"seq", 8}, {"embed", 16}};
  EXPECT_EQ(to_string(x), "[batch:4 seq:8 embed:16]");
  EXPECT_EQ(x.elements(), 512);
  EXPECT_EQ(x.stride(0), 128);
  EXPECT_EQ(x.find("seq"), 1);
  EXPECT_EQ(x.find("ffn"), -1);
  EXPECT_THROW(x.size("ffn"), base::InternalError);
  EXPECT_THROW((Shape{{"a", 1}, {"a", 2}}), base::InternalError);
  EXPECT_EQ(Shape{}.elements(), 1);
}

}  // namespace kintsugi::tensor::dtype_test
