// Every layout gives the answer of one rank: loss and every gradient, by name, over 20 steps with dropout; with one and
// with several micro-batches.
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

config::Settings in_one_micro_batch(const std::string& name, const std::string& dtype) {
  config::Settings s = layout_model(name, dtype);
  s.train.micro_batch = s.train.global_batch;
  return s;
}

// Arena accumulators compared with those of one rank, which are states, over two micro-batches. Samples of encoders and
// perceptrons are drawn per micro-batch, so one rank uses one too.
TEST_P(Layouts, InOneMicroBatchLikeOneRankInTwo) {
  const std::string& name = GetParam().model;
  const bool by_micro_batch = name.starts_with("bert") || name.starts_with("mlp") || name.starts_with("lenet");
  const Record found = run_layout(in_one_micro_batch, GetParam(), "fp64", 3);
  EXPECT_EQ(difference(found, twin(by_micro_batch ? in_one_micro_batch : layout_model, name, "fp64", 3), 1e-9), "");
}

INSTANTIATE_TEST_SUITE_P(All, Layouts, testing::ValuesIn(all_layouts()),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace kintsugi::tests::layouts_test
