#include "kintsugi/kernels/rotary_frequencies.h"

#include <gtest/gtest.h>

#include <numbers>
#include <vector>

#include "kintsugi/base/error.h"

namespace kintsugi::kernels::rotary_frequencies_test {
namespace {

using tensor::Attributes;

void expect_frequencies(const Attributes& attributes, int64_t head_dim, const std::vector<double>& want) {
  SCOPED_TRACE(to_string(attributes));
  const RotaryFrequencies f(attributes, head_dim);
  ASSERT_EQ(f.dims(), static_cast<int64_t>(2 * want.size()));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(f[static_cast<int64_t>(i)], want[i], 1e-14) << i;
}

std::string error_of(const Attributes& attributes, int64_t head_dim) {
  try {
    const RotaryFrequencies f(attributes, head_dim);
  } catch (const base::InternalError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST(RotaryFrequencies, OfTheDimsThatAreTurned) {
  expect_frequencies({{"theta", 100.0}}, 4, {1, 0.1});
  expect_frequencies({{"theta", 100.0}, {"dims", int64_t{4}}}, 10, {1, 0.1});
  EXPECT_EQ(RotaryFrequencies({{"theta", 100.0}}, 4).magnitude(), 1);
}

TEST(RotaryFrequencies, Scaled) {
  expect_frequencies({{"theta", 100.0}, {"scaling", "linear"}, {"factor", 4.0}}, 4, {0.25, 0.025});
  expect_frequencies({{"theta", 100.0}, {"scaling", "list"}, {"factors", "2 5e0"}}, 4, {0.5, 0.02});
}

// Wavelengths 2 pi, 20 pi, 200 pi and 2,000 pi: short below 800 / 4, long above 800.
TEST(RotaryFrequencies, Llama3MixesBetweenShortAndLong) {
  const double share = (800 / (200 * std::numbers::pi) - 1) / 3;
  expect_frequencies({{"theta", 10000.0},
                      {"scaling", "llama3"},
                      {"factor", 8.0},
                      {"low_factor", 1.0},
                      {"high_factor", 4.0},
                      {"original", int64_t{800}}},
                     8, {1, 0.1, 0.01 * ((1 - share) / 8 + share), 0.001 / 8});
}

// 4,096 positions are 32 turns of pair 1.309 and one of pair 2.814.
TEST(RotaryFrequencies, YarnMixesBetweenFastAndSlow) {
  Attributes attributes = {{"theta", 10000.0},          {"scaling", "yarn"}, {"factor", 4.0},
                           {"original", int64_t{4096}}, {"beta_fast", 32.0}, {"beta_slow", 1.0}};
  expect_frequencies(attributes, 8, {1, 0.1, 0.01 * (0.5 / 4 + 0.5), 0.001 / 4});  // from 1 to 3
  attributes.set("truncate", int64_t{0});
  expect_frequencies(attributes, 8, {1, 0.1, 0.006556971521129435, 0.001 / 4});
  attributes.set("beta_slow", 32.0);  // from 1.309 to as good as the same
  expect_frequencies(attributes, 8, {1, 0.1, 0.01 / 4, 0.001 / 4});
}

TEST(RotaryFrequencies, WhatDoesNotFitIsSaid) {
  EXPECT_EQ(error_of({{"theta", 100.0}, {"dims", int64_t{6}}}, 4), "[rotary] internal error: 6 dims of 4 are no pairs");
  EXPECT_EQ(error_of({{"theta", 100.0}, {"dims", int64_t{3}}}, 4), "[rotary] internal error: 3 dims of 4 are no pairs");
  EXPECT_EQ(error_of({{"theta", 100.0}, {"scaling", "ntk"}, {"factor", 2.0}}, 4),
            "[rotary] internal error: no scaling \"ntk\"; there are linear, llama3, yarn, list");
  EXPECT_EQ(error_of({{"theta", 100.0}, {"scaling", "list"}, {"factors", "2"}}, 4),
            "[rotary] internal error: no divisor above 0 at \"\" in the list of factors");
  EXPECT_EQ(error_of({{"theta", 100.0}, {"scaling", "list"}, {"factors", "2 3 4"}}, 4),
            "[rotary] internal error: 2 factors, and then \" 4\"");
}

}  // namespace kintsugi::kernels::rotary_frequencies_test
