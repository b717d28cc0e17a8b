#include "kintsugi/simulate/quantity.h"

#include <gtest/gtest.h>

namespace kintsugi::simulate::quantity_test {

TEST(Quantity, HasTheUnitOfItsMeasure) {
  EXPECT_EQ(quantity("2039 GB/s", Measure::bytes_per_second), 2039e9);
  EXPECT_EQ(quantity("200 Gb/s", Measure::bytes_per_second), 25e9);
  EXPECT_EQ(quantity("25GB/s", Measure::bytes_per_second), 25e9);
  EXPECT_EQ(quantity("80 GiB", Measure::bytes), 80.0 * (1 << 30));
  EXPECT_EQ(quantity("312 TFLOP/s", Measure::flops_per_second), 312e12);
  EXPECT_EQ(quantity("0.4 kW", Measure::watts), 400);
  EXPECT_DOUBLE_EQ(*quantity("3.4 us", Measure::seconds), 3.4e-6);
  EXPECT_EQ(quantity("0.8", Measure::share), 0.8);
}

TEST(Quantity, RefusesOtherTexts) {
  for (const char* text : {"", "GB/s", "25", "25 GB", "25 gb/s", "25 GB/s ", "nan GB/s", "inf GB/s", "25  GB/s"})
    EXPECT_FALSE(quantity(text, Measure::bytes_per_second)) << text;
  EXPECT_FALSE(quantity("8 us", Measure::count));
}

TEST(Quantity, IsPrintedInTheUnitThatReadsBest) {
  EXPECT_EQ(to_string(2039e9, Measure::bytes_per_second), "2.039 TB/s");
  EXPECT_EQ(to_string(25e9, Measure::bytes_per_second), "25 GB/s");
  EXPECT_EQ(to_string(5e-6, Measure::seconds), "5 us");
  EXPECT_EQ(to_string(8, Measure::count), "8");
  EXPECT_EQ(to_string(312e12, Measure::flops_per_second), "312 TFLOP/s");
}

}  // namespace kintsugi::simulate::quantity_test
