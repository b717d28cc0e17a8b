// Convolutions split in space whose interior is computed while their halo travels: they give the answer of one rank,
// and take less time where messages take some.
#include <gtest/gtest.h>

#include <map>

#include "kintsugi/compile/programs.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/simulate/simulate.h"
#include "kintsugi/tensor/window.h"
#include "tests/layouts.h"
#include "tests/small_model.h"

namespace kintsugi::tests::space_interior_test {
namespace {

// Images large enough for parts. LeNet's first convolution has 2 x 68 rows of 136 outputs for 4 samples, those of the
// U-Net's first level have 2 x 32 rows of 64, or 2 x 8 planes of 16 x 16, for 4, and ResNet-18's first layers as many.
config::Settings large_images(const std::string& name, const std::string& dtype) {
  config::Settings s = small_model(name.substr(0, name.find('-')), dtype);
  const bool lenet = s.model.family == "lenet", unet = s.model.family == "unet", deep = name.ends_with("-deep");
  s.model.dropout = 0;
  s.model.image_channels = unet ? 1 : 3;
  s.model.image_width = lenet ? 140 : deep ? 16 : 64;
  s.model.image_height = name.ends_with("-odd") ? 139 : s.model.image_width;
  s.model.image_depth = deep ? 16 : 0;
  s.model.layers = lenet ? 4 : 9;
  if (unet) s.model.embed = deep ? 10 : 16;
  s.parallel.allow_repeat = deep;  // of 16 planes, the lowest level has one
  s.train.global_batch = s.train.micro_batch = name.ends_with("-odd") ? 8 : 4;
  if (!lenet) s.parallel.device = "cpu";
  return s;
}

program::Program compiled(const config::Settings& s, const kernels::KernelSet& kernels) {
  return compile::only_stage(compile::compile({.settings = s, .kernels = kernels}));
}
program::Program compiled(const ModelLayout& l) {
  config::Settings s = large_images(l.model, "fp32");
  set_layout(s, l.parallel);
  s.train.micro_batch /= config::data_ranks(s.parallel);
  return compiled(s, *compile::kernels_of(s));
}

// Number of convolutions in the forward pass, and of those whose interior has a call of its own.
std::pair<int, int> convolutions(const program::Program& p) {
  std::pair<int, int> count = {0, 0};
  for (const program::Body& body : p.bodies)
    if (body.variant_of < 0 && body.does(program::Work::forward))
      for (const program::Instruction& i : body.instructions) {
        if (i.kernel != "convolution") continue;
        const auto part = tensor::output_part(i.attributes);
        if (part && part->outer) continue;
        ++count.first;
        count.second += part.has_value();
      }
  return count;
}

// The CPU's kernels, without parts.
class WithoutParts : public kernels::KernelSet {
 public:
  std::string_view name() const override { return set_->name(); }
  const kernels::Kernel& find(std::string_view kind) const override {
    const auto [found, is_new] = kernels_.try_emplace(std::string(kind), set_->find(kind));
    if (is_new && found->second.can(kernels::Capability::parts)) found->second.abilities = {};
    return found->second;
  }

 private:
  std::unique_ptr<kernels::KernelSet> set_ = kernels::cpu_kernels();
  mutable std::map<std::string, kernels::Kernel> kernels_;
};

// Devices of 100 GFLOP/s that start a kernel in 5 us, on a link of that many bytes/s.
simulate::Cluster cluster_with(double bandwidth) {
  simulate::Cluster c;
  c.nodes = 1;
  c.devices_per_node = 8;
  c.device = {.name = "device",
              .units = 1,
              .memory = 1e11,
              .memory_bandwidth = 2e10,
              .memory_share = 1,
              .kernel_start = 5e-6,
              .peak = {{tensor::DType::f32, 1e11}, {tensor::DType::f64, 1e11}}};
  c.products = {.share = 1, .depth = 0, .start = 5e-6, .tiles = {{16, 16}}};
  c.attention = {.forward = 0.5, .backward = 0.25};
  c.node = {.bandwidth = bandwidth};
  c.network.link = {.bandwidth = bandwidth};
  return c;
}

}  // namespace

class Interior : public testing::TestWithParam<ModelLayout> {};

TEST_P(Interior, LossAndGradientsOfOneRankInFp32) {
  EXPECT_GT(convolutions(compiled(GetParam())).second, 0);
  const Record found = run_layout(large_images, GetParam(), "fp32", 1);
  EXPECT_EQ(difference(found, twin(large_images, GetParam().model, "fp32", 1), 1e-5), "");
}

INSTANTIATE_TEST_SUITE_P(All, Interior,
                         testing::Values(ModelLayout{"lenet", "space=2"}, ModelLayout{"lenet-odd", "space=2 data=2"},
                                         ModelLayout{"unet", "space=2"}, ModelLayout{"unet", "space=2 recompute=full"},
                                         ModelLayout{"unet-deep", "space=2 space_dims=depth"}),
                         [](const auto& info) { return test_name(info.param); });

TEST(Interior, OfOneRankInFp64) {
  const ModelLayout layout = {"lenet", "space=2"};
  const Record found = run_layout(large_images, layout, "fp64", 1);
  EXPECT_EQ(difference(found, twin(large_images, layout.model, "fp64", 1), 1e-9), "");
}

// Layer1 of ResNet-18: its stem has fewer FLOPs, the other layers fewer positions. Of the U-Net, those of the first
// level except that of one channel. None if two dims are split.
TEST(Interior, WhichConvolutionsHaveOne) {
  EXPECT_EQ(convolutions(compiled({"resnet18", "space=2"})), std::pair(20, 4));
  EXPECT_EQ(convolutions(compiled({"lenet", "space=2"})), std::pair(2, 2));
  EXPECT_EQ(convolutions(compiled({"unet", "space=2"})).second, 3);
  EXPECT_EQ(convolutions(compiled({"unet-deep", "space=2 space_dims=depth"})).second, 3);
  EXPECT_EQ(convolutions(compiled({"lenet", "space=4 tiles"})), std::pair(2, 0));
  EXPECT_EQ(convolutions(compiled({"lenet", "data=2"})), std::pair(2, 0));
}

TEST(Interior, ASlowLinkCostsLess) {
  config::Settings s = large_images("resnet18", "fp32");
  set_layout(s, "space=2");
  const auto seconds = [&](const kernels::KernelSet& kernels, double bandwidth) {
    return simulate::simulate({compiled(s, kernels)}, cluster_with(bandwidth), simulate::softwares()[0],
                              {.step = program::Step::evaluate})
        .seconds;
  };
  const auto cpu = kernels::cpu_kernels();
  const WithoutParts whole;
  // A halo row of layer1 has 4 x 64 x 64 numbers, 3.3 ms, and its convolution takes 6 ms; evaluated, since the sums of
  // gradients would take most of a step.
  EXPECT_LT(seconds(*cpu, 2e7), 0.95 * seconds(whole, 2e7));
  // Messages that take no time: five more calls, and their second reading of the weights.
  EXPECT_GE(seconds(*cpu, 1e15), seconds(whole, 1e15));
  EXPECT_LT(seconds(*cpu, 1e15), 1.01 * seconds(whole, 1e15));
}

}  // namespace kintsugi::tests::space_interior_test
