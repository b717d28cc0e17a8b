// Every layout gives the answer of one rank: loss and every gradient, by name, over 20 steps, with dropout.
#include <gtest/gtest.h>

#include "tests/layout_lists.h"

namespace kintsugi::tests::layouts_test {
namespace {

class Layouts : public testing::TestWithParam<ModelLayout> {};

TEST_P(Layouts, LossAndGradientsOfOneRankOver20StepsInFp64) {
  const Record found = run_layout(layout_model, GetParam(), "fp64", 20);
  EXPECT_EQ(difference(found, twin(layout_model, GetParam().model, "fp64", 20), 1e-9), "");
}

TEST_P(Layouts, OneStepInFp32) {
  const Record found = run_layout(layout_model, GetParam(), "fp32", 1);
  EXPECT_EQ(difference(found, twin(layout_model, GetParam().model, "fp32", 1), 1e-5), "");
}

INSTANTIATE_TEST_SUITE_P(All, Layouts, testing::ValuesIn(all_layouts()),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace kintsugi::tests::layouts_test
