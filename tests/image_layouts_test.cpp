// Networks for volumes, pixels and patches give the answer of one rank in every layout: loss and every gradient, by
// name.
#include <gtest/gtest.h>

#include "kintsugi/compile/programs.h"
#include "kintsugi/program/walk.h"
#include "tests/layouts.h"
#include "tests/small_model.h"

namespace kintsugi::tests::image_layouts_test {
namespace {

// "unet", "unet-deep" (a volume), "cosmoflow", "vit", "vit-mean" (no class token), "vit-mixup"; with "-mse" or
// "-relative" fields.
config::Settings image_model(const std::string& name, const std::string& dtype) {
  const std::string family = name.substr(0, name.find('-'));
  config::Settings s = small_model(family, dtype);
  config::Model& m = s.model;
  m.dropout = 0.0;
  s.train.global_batch = 4;
  s.train.micro_batch = 2;
  s.parallel.device = "cpu";
  m.image_channels = 1;
  if (family == "unet") {
    m.layers = 9;
    m.embed = 2;
    const bool deep = name.starts_with("unet-deep");
    m.image_height = deep ? 16 : 48;
    m.image_width = 16;
    m.image_depth = deep ? 16 : 0;
  } else if (family == "cosmoflow") {
    m.layers = 7;
    m.image_dtype = "fp32";
    m.image_channels = 2;
    m.image_mean = {0.1, -0.4};
    m.image_deviation = {0.5, 2.0};
    m.image_height = m.image_width = m.image_depth = 16;
  } else {
    m.layers = 4;
    m.heads = m.kv_heads = 4;
    m.image_height = 12;
    m.image_width = 8;
    m.patch = 4;
    m.class_token = !name.ends_with("-mean");
    s.train.mixup = name.ends_with("-mixup") ? 0.2 : 0.0;
    m.drop_path = 0.2;
    m.dropout = 0.1;
    if (name.starts_with("vit-deep")) m.image_depth = 8, m.image_height = 8;
  }
  if (const bool relative = name.ends_with("-relative"); relative || name.ends_with("-mse")) {
    m.objective = "fields";
    m.class_token = false;
    s.train.loss = relative ? "relative_l2" : "mse";
  }
  return s;
}

class ImageLayouts : public testing::TestWithParam<ModelLayout> {};

TEST_P(ImageLayouts, OfOneRankInFp64) {
  const Record found = run_layout(image_model, GetParam(), "fp64", 1);
  EXPECT_EQ(difference(found, twin(image_model, GetParam().model, "fp64", 1), 1e-9), "");
}

TEST_P(ImageLayouts, OfOneRankInFp32) {
  const Record found = run_layout(image_model, GetParam(), "fp32", 1);
  EXPECT_EQ(difference(found, twin(image_model, GetParam().model, "fp32", 1), 1e-5), "");
}

INSTANTIATE_TEST_SUITE_P(
    All, ImageLayouts,
    testing::Values(
        ModelLayout{"unet", "space=2"}, ModelLayout{"unet", "space=3"}, ModelLayout{"unet", "space=4 space_dims=width"},
        ModelLayout{"unet", "space=2 data=2 zero=3"}, ModelLayout{"unet", "space=4 tiles"},
        ModelLayout{"unet", "tensor=2"}, ModelLayout{"unet", "pipe=2"}, ModelLayout{"unet", "pipe=2 schedule=gpipe"},
        ModelLayout{"unet", "pipe=3 schedule=zero_bubble"}, ModelLayout{"unet", "space=2 pipe=3"},
        ModelLayout{"unet", "pipe=2 data=2 zero=2"}, ModelLayout{"unet", "pipe=2 schedule=interleaved chunks=2"},
        ModelLayout{"unet", "pipe=2 recompute=full"}, ModelLayout{"unet", "pipe=4"},
        ModelLayout{"unet", "pipe=2 schedule=interleaved chunks=4"},
        ModelLayout{"unet-deep", "space=2 space_dims=depth"},
        ModelLayout{"unet-deep", "space=4 space_dims=depth,height"},
        ModelLayout{"cosmoflow", "space=2 space_dims=depth"}, ModelLayout{"cosmoflow", "space=2 tensor=2"},
        ModelLayout{"cosmoflow", "data=2 zero=2"}, ModelLayout{"vit", "data=2 zero=1"}, ModelLayout{"vit", "tensor=2"},
        ModelLayout{"vit", "pipe=2 data=2"}, ModelLayout{"vit-mean", "tensor=2 data=2 zero=3"},
        ModelLayout{"vit-mixup", "data=2 tensor=2"}, ModelLayout{"vit-mixup", "pipe=2"}, ModelLayout{"vit", "space=2"},
        ModelLayout{"vit", "context=2"}, ModelLayout{"vit-mean", "space=2 data=2"},
        ModelLayout{"vit-relative", "space=2"}, ModelLayout{"vit-relative", "space=2 data=2 zero=3"},
        ModelLayout{"vit-relative", "context=2 recompute=full"}, ModelLayout{"vit-relative", "pipe=2 data=2 zero=1"},
        ModelLayout{"vit-mse", "tensor=2 sequence_parallel data=2 zero=2"},
        ModelLayout{"vit-mse", "space=2 space_dims=width"}, ModelLayout{"vit-deep-relative", "space=2 tensor=2"},
        ModelLayout{"unet-relative", "space=2"}, ModelLayout{"unet-relative", "space=4 tiles"},
        ModelLayout{"unet-relative", "pipe=2 recompute=full"}, ModelLayout{"unet-mse", "space=3"},
        ModelLayout{"unet-mse", "space=2 data=2 zero=3"}, ModelLayout{"unet-deep-relative", "tensor=2"}),
    [](const auto& info) { return test_name(info.param); });

// A stage of a U-Net sends several values to a later one, and as many gradients come back.
TEST(ImageLayouts, UNetsHaveProgramsWithManyMicroBatches) {
  for (const std::string pipe :
       {"pipe=2", "pipe=3", "pipe=4", "pipe=9", "pipe=2 schedule=gpipe", "pipe=4 schedule=gpipe",
        "pipe=4 schedule=zero_bubble", "pipe=2 schedule=interleaved chunks=2", "pipe=2 schedule=interleaved chunks=4",
        "pipe=4 schedule=interleaved chunks=2", "pipe=2 data=2 zero=3", "pipe=4 space=2", "pipe=4 recompute=full"}) {
    SCOPED_TRACE(pipe);
    config::Settings s = image_model("unet", "fp32");
    s.train.global_batch = 16;
    set_layout(s, pipe);
    s.train.micro_batch /= config::data_ranks(s.parallel);
    const std::unique_ptr<kernels::KernelSet> kernels = compile::kernels_of(s);
    EXPECT_NO_THROW(compile::compile({.settings = s, .kernels = *kernels}));
  }
}

// Of the U-Net's 48 rows, each of two ranks has 24, 12, 6 and 3, and of the 3 rows of the lowest level, 2 and 1.
// Transposed convolutions have windows that do not overlap; only the lowest computes 4 rows on one rank, of which it
// keeps 3.
TEST(ImageLayouts, HalosOfTheUNetByHand) {
  config::Settings s = image_model("unet", "fp32");
  set_layout(s, "space=2");
  const std::unique_ptr<kernels::KernelSet> kernels = compile::kernels_of(s);
  const program::Program p = compile::only_stage(compile::compile({.settings = s, .kernels = *kernels}));
  std::vector<double> wire;
  for (const program::Body& body : p.bodies)
    if (body.variant_of < 0 && body.does(program::Work::forward))
      for (const program::Instruction& i : body.instructions)
        if (starts(i, program::Collective::halo)) wire.push_back(i.cost.wire_bytes);
  const auto rows = [](int64_t rows, int64_t width, int64_t channels) {
    return static_cast<double>(rows * width * channels * 2 * 4);  // of 2 samples, fp32
  };
  const std::vector<double> want = {
      rows(1, 16, 1), rows(1, 16, 2), rows(1, 8, 2),  rows(1, 8, 4),  rows(1, 4, 4),  rows(1, 4, 8),
      rows(1, 2, 8),  rows(1, 2, 16),  // a row to the neighbour for each convolution of 3 x 3
      rows(1, 2, 16),                  // the pool to 3 rows: 2 on the first rank need a fourth row
      rows(1, 1, 16), rows(1, 1, 32), rows(1, 2, 16), rows(1, 2, 32), rows(1, 2, 16), rows(1, 4, 16),
      rows(1, 4, 8),  rows(1, 8, 8),  rows(1, 8, 4),  rows(1, 16, 4), rows(1, 16, 2)};
  EXPECT_EQ(wire, want);
}

}  // namespace
}  // namespace kintsugi::tests::image_layouts_test
