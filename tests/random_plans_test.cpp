// Unusual plans: any dims on any axes, in any order, padded or not. A plan may be slow, but never wrong.
#include <gtest/gtest.h>

#include "tests/layouts.h"
#include "tests/random_plan.h"

namespace kintsugi::tests::random_plans_test {
namespace {

class RandomPlans : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomPlans, MayBeSlowButNotWrong) {
  constexpr uint64_t kEach = 10;
  for (uint64_t seed = GetParam() * kEach; seed < (GetParam() + 1) * kEach; ++seed) {
    const config::Settings s = random_model(seed);
    const plan::Plan plan = random_plan(seed);
    try {
      train::LayoutRun one(s), run(s, plan);
      EXPECT_EQ(difference(record(run, s, 2), record(one, s, 2), 1e-9), "") << "plan " << seed << "\n"
                                                                            << plan::print(plan);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "plan " << seed << ": " << e.what() << "\n" << plan::print(plan);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TenAtATime, RandomPlans, testing::Range<uint64_t>(0, 20));

class RandomPipelines : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomPipelines, MayBeSlowButNotWrong) {
  constexpr uint64_t kEach = 10;
  for (uint64_t seed = GetParam() * kEach; seed < (GetParam() + 1) * kEach; ++seed) {
    const config::Settings s = staged_model(seed);
    const plan::Plan plan = in_stages(random_plan(seed), seed);
    config::Settings again = s;
    again.parallel.recompute = random_recompute(seed);
    try {
      train::LayoutRun one(s), run(again, plan);
      EXPECT_EQ(difference(record(run, s, 2), record(one, s, 2), 1e-9), "") << "plan " << seed << "\n"
                                                                            << plan::print(plan);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "plan " << seed << ": " << e.what() << "\n" << plan::print(plan);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TenAtATime, RandomPipelines, testing::Range<uint64_t>(0, 6));

}  // namespace
}  // namespace kintsugi::tests::random_plans_test
