// Convolutional networks split in space give the answer of one rank: loss and every gradient, by name, alone and with
// other axes, for images whose height and width do not divide.
#include <gtest/gtest.h>

#include "kintsugi/compile/programs.h"
#include "kintsugi/program/walk.h"
#include "tests/layouts.h"
#include "tests/small_model.h"

namespace kintsugi::tests::space_layouts_test {
namespace {

config::Settings images_model(const std::string& name, const std::string& dtype) {
  config::Settings s = small_model(name.substr(0, name.find('-')), dtype);
  s.model.dropout = 0.2;
  s.model.image_channels = 3;
  s.model.image_mean = {0.485, 0.456, 0.406};
  s.model.image_deviation = {0.229, 0.224, 0.225};
  s.model.image_height = name.ends_with("-odd") ? 27 : name.ends_with("-tall") ? 40 : 24;
  s.model.image_width = name.ends_with("-odd") ? 21 : 20;
  s.model.layers = s.model.family == "lenet" ? 4 : 9;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  return s;
}

// The stages of ResNets are wide, and their sums are taken in other orders.
config::Settings residual_model(const std::string& name, const std::string& dtype) {
  config::Settings s = images_model(name, dtype);
  s.model.dropout = 0.0;
  s.model.image_height = name.ends_with("-odd") ? 19 : 16;
  s.model.image_width = name.ends_with("-odd") ? 13 : 16;
  s.train.global_batch = 4;
  s.train.micro_batch = 2;
  s.parallel.device = "cpu";
  return s;
}

class Space : public testing::TestWithParam<ModelLayout> {};

TEST_P(Space, LeNetOfOneRankOver3StepsInFp64) {
  const Record found = run_layout(images_model, GetParam(), "fp64", 3);
  EXPECT_EQ(difference(found, twin(images_model, GetParam().model, "fp64", 3), 1e-9), "");
}

TEST_P(Space, LeNetInFp32) {
  const Record found = run_layout(images_model, GetParam(), "fp32", 1);
  EXPECT_EQ(difference(found, twin(images_model, GetParam().model, "fp32", 1), 1e-5), "");
}

INSTANTIATE_TEST_SUITE_P(
    All, Space,
    testing::Values(ModelLayout{"lenet", "space=2"}, ModelLayout{"lenet", "space=3"},
                    ModelLayout{"lenet-tall", "space=4"}, ModelLayout{"lenet-odd", "space=2"},
                    ModelLayout{"lenet-odd", "space=3"}, ModelLayout{"lenet", "space=2 space_dims=width"},
                    ModelLayout{"lenet-odd", "space=3 space_dims=width,height"}, ModelLayout{"lenet", "space=4 tiles"},
                    ModelLayout{"lenet-odd", "space=4 tiles"}, ModelLayout{"lenet", "space=2 data=2"},
                    ModelLayout{"lenet-odd", "space=2 data=2 zero=1"}, ModelLayout{"lenet", "space=2 data=2 zero=2"},
                    ModelLayout{"lenet-odd", "space=2 data=2 zero=3"}, ModelLayout{"lenet", "space=2 tensor=2"},
                    ModelLayout{"lenet-odd", "space=2 tensor=2 data=2"}, ModelLayout{"lenet", "space=2 pipe=2"},
                    ModelLayout{"lenet", "space=2 recompute=full"},
                    ModelLayout{"lenet-odd", "space=6 space_dims=width,height allow_repeat"}),
    [](const auto& info) { return test_name(info.param); });

// Batch norms, windows with strides, and residuals.
class SpaceOfResidual : public testing::TestWithParam<ModelLayout> {};

TEST_P(SpaceOfResidual, LossAndGradientsOfOneRankInFp32) {
  const Record found = run_layout(residual_model, GetParam(), "fp32", 1);
  EXPECT_EQ(difference(found, twin(residual_model, GetParam().model, "fp32", 1), 1e-5), "");
}

INSTANTIATE_TEST_SUITE_P(All, SpaceOfResidual,
                         testing::Values(ModelLayout{"resnet18", "space=2"},
                                         ModelLayout{"resnet18-odd", "space=2 data=2"},
                                         ModelLayout{"resnet18-odd", "space=2 space_dims=width"}),
                         [](const auto& info) { return test_name(info.param); });

TEST(Space, HalosOfLeNetByHand) {
  config::Settings s = images_model("lenet", "fp32");
  set_layout(s, "space=2");
  const std::unique_ptr<kernels::KernelSet> kernels = compile::kernels_of(s);
  const program::Program p = compile::only_stage(compile::compile({.settings = s, .kernels = *kernels}));
  std::vector<double> wire;
  for (const program::Body& body : p.bodies)
    if (body.variant_of < 0 && body.does(program::Work::forward))
      for (const program::Instruction& i : body.instructions)
        if (starts(i, program::Collective::halo)) wire.push_back(i.cost.wire_bytes);
  // Each rank has 12 rows of the image. conv1 outputs 20 rows; rank 0 needs rows 0 to 13, rank 1 rows 10 to 23: 2 rows
  // of 20 x 3 numbers, for 4 samples. The first pool reads a rank's own 10 rows. conv2 outputs 6 of 10 rows; rank 0
  // needs rows 0 to 6 and has 5: 2 rows of 8 x 6. The second pool outputs 3 rows; rank 0 outputs 2 and has 3 of the 4
  // rows that it needs: a row of 4 x 16.
  EXPECT_EQ(wire, (std::vector<double>{2 * 20 * 3 * 4 * 4, 2 * 8 * 6 * 4 * 4, 1 * 4 * 16 * 4 * 4}));
}

}  // namespace
}  // namespace kintsugi::tests::space_layouts_test
