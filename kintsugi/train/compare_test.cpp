#include "kintsugi/train/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kintsugi/models/optimizers.h"

namespace kintsugi::train::compare_test {
namespace {

// The change of an element by AdamW in the last of these steps, in learning rates.
double moved(const std::vector<double>& gradients, double beta1, double beta2) {
  double m = 0, v = 0;
  for (double g : gradients) {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
  }
  const auto t = static_cast<double>(gradients.size());
  return m / (1 - std::pow(beta1, t)) / std::sqrt(v / (1 - std::pow(beta2, t)));
}

}  // namespace

TEST(AdamwReach, IsReachedAndNotPassed) {
  for (const auto& [beta1, beta2] : {std::pair{0.9, 0.95}, {0.9, 0.999}, {0.0, 0.5}, {0.95, 0.9}})
    for (int64_t steps : {1, 2, 3, 10, 200}) {
      // The gradients that reach it grow as the weight of m over that of v.
      std::vector<double> most(static_cast<size_t>(steps)), other(most), alike(most.size(), 1.0);
      for (size_t i = 0; i < most.size(); ++i) {
        const auto age = static_cast<double>(most.size() - 1 - i);
        most[i] = std::pow(beta1 / beta2, age);
        other[i] = std::cos(static_cast<double>(i * i));
      }
      double largest = 0;  // of all steps up to this one
      for (size_t i = 1; i <= most.size(); ++i)
        largest = std::max(largest, moved({most.end() - static_cast<std::ptrdiff_t>(i), most.end()}, beta1, beta2));
      const double reach = models::adamw_reach(beta1, beta2, steps);
      EXPECT_NEAR(reach, largest, 1e-9 * reach) << beta1 << " " << beta2 << " " << steps;
      EXPECT_LE(std::abs(moved(other, beta1, beta2)), reach);
      EXPECT_LE(moved(alike, beta1, beta2), reach * (1 + 1e-12));
    }
  EXPECT_EQ(models::adamw_reach(0.9, 0.999, 1), 1.0);
}

TEST(Tolerance, IsThatOfTheCoarsestDtype) {
  config::Settings s;
  s.parallel.ranks = 2;
  for (const auto& [dtype, wire, tolerance] : {std::tuple{"fp64", "fp32", 1e-9},
                                               {"fp32", "fp32", 1e-5},
                                               {"fp16", "fp32", 2e-3},
                                               {"bf16", "fp32", 1e-2},
                                               {"fp32", "bf16", 2e-3},
                                               {"bf16", "bf16", 1e-2}}) {
    s.train.dtype = dtype;
    s.parallel.wire = wire;
    EXPECT_EQ(default_tolerance(s), tolerance) << dtype << " " << wire;
  }
}

TEST(Difference, OfNumbersThatAreNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ((Difference{.value = nan, .twin = nan}.size()), 0);
  EXPECT_EQ((Difference{.value = infinite, .twin = infinite}.size()), 0);
  EXPECT_EQ((Difference{.value = nan, .twin = 1}.size()), infinite);
  EXPECT_FALSE((Difference{.value = 1, .twin = nan, .limit = 1e300}.within()));
}

TEST(Comparison, AsText) {
  Comparison c = {.mesh = "data=2", .ranks = 2, .steps = 1, .differences = {}};
  c.differences = {
      {.what = Compared::weight, .name = "head", .layer = 1, .element = "[n:0]", .value = 1, .twin = 1},
      {.what = Compared::weight, .name = "table", .layer = 0, .element = "[n:0]", .value = 1, .twin = 1},
      {.step = 1, .what = Compared::loss, .value = 4, .twin = 4, .limit = 4e-5, .scale = 4},
      {.step = 1,
       .what = Compared::gradient,
       .name = "head",
       .layer = 1,
       .element = "[n:1]",
       .value = 3,
       .twin = 3,
       .limit = 1e-4,
       .scale = 10},
      {.step = 1,
       .what = Compared::gradient,
       .name = "table",
       .layer = 0,
       .element = "[n:2]",
       .rank = 1,
       .value = 3,
       .twin = 3.00005,
       .limit = 1e-4,
       .scale = 10},
      {.step = 1,
       .what = Compared::weight,
       .name = "head",
       .layer = 1,
       .element = "[n:3]",
       .value = 1,
       .twin = 1,
       .limit = 1e-3,
       .scale = 1e-3},
      {.step = 1,
       .what = Compared::weight,
       .name = "table",
       .layer = 0,
       .element = "[n:4]",
       .value = 0.5,
       .twin = 0.5001,
       .limit = 1e-3,
       .scale = 1e-3},
  };
  EXPECT_EQ(print(c),
            "step     loss, 2 ranks          one rank  difference   gradients     weights\n"
            "   0                                                                       0\n"
            "   1                 4                 4           0       5e-06         0.1\n"
            "\n"
            "layer  name     gradient      weight\n"
            "    0  table       5e-06         0.1\n"
            "    1  head            0           0\n"
            "\n"
            "the same: 1 step, 2 ranks (data=2)\n");
  EXPECT_EQ(c.first(), nullptr);

  c.differences[4].value = 2;
  EXPECT_EQ(print(c),
            "step     loss, 2 ranks          one rank  difference   gradients     weights\n"
            "   0                                                                       0\n"
            "   1                 4                 4           0         0.1         0.1\n"
            "\n"
            "layer  name     gradient      weight\n"
            "    0  table         0.1         0.1  differs\n"
            "    1  head            0           0\n"
            "\n"
            "first difference: step 1, gradient of table[n:2]: 2 on rank 1, 3.00005 on one rank; limit 0.0001; 1 of 2 "
            "gradients differ there\n");

  c.differences[2].value = 5;
  c.differences[0].value = 1.5;
  const std::string text = print(c);
  EXPECT_EQ(
      text.substr(text.find("first")),
      "first difference: before the first step, weight of head[n:0]: 1.5 on rank 0, 1 on one rank; limit 0; 1 of 2 "
      "weights differ there\n");
  c.differences[0].value = 1;
  const std::string loss = print(c);
  EXPECT_EQ(loss.substr(loss.find("first")),
            "first difference: step 1, the loss: 5 on 2 ranks, 4 on one rank; limit 4e-05\n");
  c.differences[4].twin = 2.5;
  EXPECT_EQ(print_csv({.mesh = "", .ranks = 2, .steps = 1, .differences = {c.differences[4]}}),
            "step,what,layer,name,element,rank,value,one_rank,difference,limit,scale\n"
            "1,gradient,0,table,[n:2],1,2,2.5,0.5,0.0001,10\n");
}

}  // namespace kintsugi::train::compare_test
