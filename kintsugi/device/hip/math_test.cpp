// The functions of math.h compared with the CPU's, compiled for it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

#define __device__
#define __forceinline__ inline
namespace kintsugi::device::hip_math {
#include "kintsugi/device/hip/math.h"
}
#undef __device__
#undef __forceinline__

namespace kintsugi::device::hip_math_test {
namespace {

template <typename F>
void for_numbers(double from, double to, const F& f) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> numbers(from, to);
  f(from);
  for (int i = 0; i < 200'000; ++i) f(numbers(random));
}

TEST(HipMath, Log) {
  const auto compare = [](double x) {
    EXPECT_NEAR(hip_math::log(x), std::log(x), 4e-16 * std::fabs(std::log(x))) << x;
  };
  for_numbers(0x1p-33, 1, compare);
  for_numbers(1, 1e9, compare);
  for (int e = -1000; e <= 1000; ++e) compare(std::ldexp(0.7, e));
}

TEST(HipMath, Log1p) {
  const auto compare = [](double x) { EXPECT_NEAR(hip_math::log1p(x), std::log1p(x), 6e-16 * std::fabs(x)) << x; };
  for_numbers(0, 1, compare);
  for_numbers(-1e-9, 1e-9, compare);
}

TEST(HipMath, Exp) {
  for_numbers(-700, 700, [](double x) { EXPECT_NEAR(hip_math::exp(x) / std::exp(x), 1, 4e-16) << x; });
  for_numbers(-1, 1, [](double x) { EXPECT_NEAR(hip_math::exp(x), std::exp(x), 4e-16 * std::exp(x)) << x; });
  EXPECT_EQ(hip_math::exp(0), 1);
  EXPECT_EQ(hip_math::exp(-1e300), 0);
  EXPECT_EQ(hip_math::exp(1e300), INFINITY);
  EXPECT_EQ(hip_math::exp(-INFINITY), 0);
  EXPECT_TRUE(std::isnan(hip_math::exp(NAN)));
}

TEST(HipMath, Cos) {
  const double turn = 2 * std::numbers::pi;
  for_numbers(-turn, 2 * turn, [](double x) { EXPECT_NEAR(hip_math::cos(x), std::cos(x), 1e-15) << x; });
}

TEST(HipMath, Erf) {
  for_numbers(-6, 6, [](double x) {
    const auto y = static_cast<float>(x);
    EXPECT_NEAR(hip_math::erff(y), std::erf(static_cast<double>(y)), 2.5e-7) << y;
  });
}

TEST(HipMath, Tanh) {
  for_numbers(-12, 12, [](double x) {
    const auto y = static_cast<float>(x);
    EXPECT_NEAR(hip_math::tanhf(y), std::tanh(static_cast<double>(y)), 2.5e-7) << y;
  });
}

TEST(HipMath, PowersOfCounts) {
  for (int n = 0; n < 2000; n += 7)
    EXPECT_NEAR(hip_math::pow(0.999, n), std::pow(0.999, n), 1e-13 * std::pow(0.999, n)) << n;
}

}  // namespace
}  // namespace kintsugi::device::hip_math_test
