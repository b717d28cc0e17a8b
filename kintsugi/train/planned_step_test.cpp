#include "kintsugi/train/planned_step.h"

#include <gtest/gtest.h>

namespace kintsugi::train::planned_step_test {

TEST(PlannedStep, IsToldOnceAfterWarmUp) {
  PlannedStep planned(0.2, "machine.toml");
  for (const double seconds : {9.0, 9.0, 0.25, 0.24, 5.0, 0.23}) EXPECT_FALSE(planned.add(seconds));
  EXPECT_EQ(planned.add(0.22), "a step takes 240.00 ms, 200.00 ms was planned on machine.toml: 20.0% more");
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(planned.add(0.1));
}

TEST(PlannedStep, SaysNothingWithoutAPlan) {
  PlannedStep planned(std::nullopt, "");
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(planned.add(0.1));
}

}  // namespace kintsugi::train::planned_step_test
