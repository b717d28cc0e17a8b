// Every pipeline gives the answer of one rank: loss and every gradient, by name, over 20 steps with dropout; and equal
// bits if nothing else is split.
#include <gtest/gtest.h>

#include "kintsugi/compile/programs.h"
#include "kintsugi/program/verify_ranks.h"
#include "tests/layout_lists.h"

namespace kintsugi::tests::pipeline_test {
namespace {

class Pipelines : public testing::TestWithParam<ModelLayout> {};

TEST_P(Pipelines, LossAndGradientsOfOneRankOver20StepsInFp64) {
  const Record found = run_layout(pipeline_model, GetParam(), "fp64", 20);
  EXPECT_EQ(difference(found, twin(pipeline_model, GetParam().model, "fp64", 20), 1e-9), "");
}

// Micro-batches are added in ascending order, so only reductions over other axes differ; the two accumulators of a tied
// weight are such a reduction.
TEST_P(Pipelines, OneStepInFp32) {
  const bool alone = GetParam().model.starts_with("llama") && GetParam().parallel.find("data") == std::string::npos &&
                     GetParam().parallel.find("tensor") == std::string::npos &&
                     GetParam().parallel.find("context") == std::string::npos;
  const Record found = run_layout(pipeline_model, GetParam(), "fp32", 3);
  const Record& one = twin(pipeline_model, GetParam().model, "fp32", 3);
  if (!alone) {
    EXPECT_EQ(difference(found, one, 1e-5), "");
    return;
  }
  EXPECT_EQ(found.losses, one.losses);
  EXPECT_EQ(found.gradients, one.gradients);
  EXPECT_EQ(found.weights, one.weights);
}

// A program in which a stage would wait forever is rejected before it runs.
TEST(DamagedPipelines, AreRefusedWithTheirPlace) {
  config::Settings s = pipeline_model("gpt", "fp32");
  set_layout(s, "pipe=2 data=2");
  s.train.micro_batch = 1;
  const std::vector<program::Program> whole = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
  program::verify_ranks(whole);
  const auto error = [&](size_t stage, const std::function<void(program::Program&)>& damage) {
    std::vector<program::Program> stages = whole;
    damage(stages[stage]);
    return error_of([&] { program::verify_ranks(stages); });
  };
  const auto drop = [](const std::string& kernel, const std::string& work) {
    return [=](program::Program& p) {
      for (program::Body& b : p.bodies)
        if (b.name.starts_with(work))
          std::erase_if(b.instructions, [&](const auto& i) { return name_of(i) == kernel; });
    };
  };
  const std::string value = "\"add\", 768 bytes of fp32, over pipe, ";
  const auto begins = [](const std::string& text, const std::string& begin) { return text.substr(0, begin.size()); };
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos ? part : text;
  };
  std::string text = error(0, drop("send", "forward"));
  EXPECT_EQ(
      begins(text,
             "[verify] internal error: train: rank 2 at instruction 0 of forward.1.first, micro-batch 0 (receive of "),
      "[verify] internal error: train: rank 2 at instruction 0 of forward.1.first, micro-batch 0 (receive of ");
  EXPECT_EQ(contains(text, value + "from rank 0) waits for rank 0, which "),
            value + "from rank 0) waits for rank 0, which ");
  text = error(0, drop("receive", "backward"));
  EXPECT_EQ(contains(text, value + "to rank 0) waits for rank 0, which "),
            value + "to rank 0) waits for rank 0, which ");
  // Two micro-batches swapped on one stage.
  text = error(1, [](program::Program& p) {
    for (program::CallList& l : p.lists)
      if (l.step == program::Step::train)
        for (program::Call& c : l.calls)
          if (c.micro_batch == 1 || c.micro_batch == 2) c.micro_batch = 3 - c.micro_batch;
  });
  EXPECT_EQ(begins(text, "[verify] internal error: train: rank "), "[verify] internal error: train: rank ");
  // A size.
  text = error(1, [](program::Program& p) {
    for (program::Body& b : p.bodies)
      for (program::Instruction& i : b.instructions)
        if (starts(i, program::Collective::receive) && b.name == "forward.1.receive")
          p.buffer(i.outs[0]).type.shape = {{"embed", 8}};
  });
  EXPECT_EQ(begins(text, "[verify] internal error: train: rank "), "[verify] internal error: train: rank ");
}

INSTANTIATE_TEST_SUITE_P(All, Pipelines, testing::ValuesIn(all_pipelines()),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace kintsugi::tests::pipeline_test
