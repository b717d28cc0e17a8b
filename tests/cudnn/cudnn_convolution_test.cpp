// cuDNN convolutions on the emulated device, through the stand-in: requests, fallbacks, and training of a network.
#include <gtest/gtest.h>

#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/gpu/convolution.h"
#include "kintsugi/tensor/window.h"
#include "kintsugi/train/compare.h"
#include "kintsugi/train/random_samples.h"
#include "tests/cudnn/standin_test.h"
#include "tests/device_layouts.h"

namespace kintsugi::tests::cudnn_convolution_test {
namespace {

using cudnn::Call;
using cudnn::Tensor;
using kernels::test::compare_on_device;
using kernels::test::random_tensor;
using tensor::DType;
using tensor::Shape;

// As cudnnBackendNumericalNote_t, cudnnDataType_t.
constexpr int kTensorCores = 0, kNondeterministic = 4, kFloat = 0, kBf16 = 9;

// x: [batch:2 height:7 width:6 channel:4], windows of 3 x 2 with stride 2 along the height.
struct Layer {
  Shape x = {{"batch", 2}, {"height", 7}, {"width", 6}, {"channel", 4}},
        w = {{"kernel_height", 3}, {"kernel_width", 2}, {"channel", 4}, {"filter", 5}},
        y = {{"batch", 2}, {"height", 4}, {"width", 6}, {"filter", 5}};
  tensor::Attributes attributes = [] {
    tensor::Attributes made;
    tensor::set_windows(made, {{"height", {.kernel = 3, .stride = 2, .low = 1, .high = 1}},
                               {"width", {.kernel = 2, .low = 0, .high = 1}}});
    return made;
  }();

  void forward(DType dtype) const {
    kernels::test::Tensor a = random_tensor(x, dtype, 1), b = random_tensor(w, dtype, 2);
    compare_on_device({.kind = "convolution", .attributes = attributes}, {&a, &b}, {{y, dtype}});
  }
  void input(DType dtype) const {
    kernels::test::Tensor a = random_tensor(y, dtype, 1), b = random_tensor(w, dtype, 2);
    compare_on_device({.kind = "convolution_grad_input", .attributes = attributes}, {&a, &b}, {{x, dtype}});
  }
  void weight(DType dtype, DType stored, bool add, kernels::test::DeviceTolerance tolerance = {}) const {
    kernels::test::Tensor a = random_tensor(x, dtype, 1), b = random_tensor(y, dtype, 2);
    compare_on_device({.kind = "convolution_grad_weight", .attributes = attributes, .accumulate = add}, {&a, &b},
                      {random_tensor(w, stored, 3)}, tolerance);
  }
};

const Tensor& named(const Call& call, int64_t name) {
  for (const Tensor& t : call.tensors)
    if (t.name == name) return t;
  throw std::runtime_error("no such tensor");
}

TEST(CudnnConvolution, Requests) {
  const Layer layer;
  layer.forward(DType::bf16), layer.input(DType::bf16), layer.weight(DType::bf16, DType::f32, true);
  // With warps of 32 and 64; operands not aligned to 16 bytes use our own kernels.
  ASSERT_EQ(cudnn::standin().calls.size(), 6u);
  for (const Call& call : cudnn::standin().calls) {
    EXPECT_EQ(call.convolutions, 1);
    EXPECT_NE(call.workspace, nullptr);
    const Tensor &x = named(call, 1), &w = named(call, 2), &y = named(call, 3);
    EXPECT_EQ(x.sizes, (std::vector<int64_t>{2, 4, 7, 6}));
    EXPECT_EQ(x.strides, (std::vector<int64_t>{168, 1, 24, 4}));
    EXPECT_EQ(w.sizes, (std::vector<int64_t>{5, 4, 3, 2}));
    EXPECT_EQ(w.strides, (std::vector<int64_t>{24, 1, 8, 4}));
    EXPECT_EQ(y.sizes, (std::vector<int64_t>{2, 5, 4, 6}));
    EXPECT_EQ(x.type, kBf16);
  }
  EXPECT_EQ(named(cudnn::standin().calls.back(), 2).type, kFloat);
}

// Gradients that the library stores in 16 bits only are rounded once more before they are added.
TEST(CudnnConvolution, NarrowWeights) {
  cudnn::standin().narrow_weights = true;
  Layer layer;
  layer.x = {{"batch", 3}, {"height", 7}, {"width", 6}, {"channel", 4}},
  layer.y = {{"batch", 3}, {"height", 4}, {"width", 6}, {"filter", 5}};
  layer.weight(DType::bf16, DType::f32, true, {1.0 / 128, 0.05});
  cudnn::standin().narrow_weights = false;
  ASSERT_EQ(cudnn::standin().calls.size(), 2u);
  EXPECT_EQ(named(cudnn::standin().calls.back(), 2).type, kBf16);
}

// An algorithm that is not deterministic, or rounds fp32 operands, is not used; nor one that needs more memory than is
// planned.
TEST(CudnnConvolution, Refused) {
  Layer layer;
  const auto calls_of = [&](DType dtype, int64_t width) {
    layer.x = {{"batch", 2}, {"height", 7}, {"width", width}, {"channel", 4}};  // graphs that are not known yet
    layer.y = {{"batch", 2}, {"height", 4}, {"width", width}, {"filter", 5}};
    cudnn::standin().calls.clear();
    layer.forward(dtype), layer.input(dtype), layer.weight(dtype, dtype, false, {2e-5, 2e-5});
    return cudnn::standin().calls.size();
  };
  cudnn::standin().notes = {kNondeterministic};
  EXPECT_EQ(calls_of(DType::bf16, 7), 0u);
  cudnn::standin().notes = {kTensorCores};
  EXPECT_EQ(calls_of(DType::bf16, 8), 6u);
  EXPECT_EQ(calls_of(DType::f32, 8), 0u);
  cudnn::standin().notes = {};
  EXPECT_EQ(calls_of(DType::f32, 9), 6u);
  cudnn::standin().needs = int64_t{1} << 20;
  EXPECT_EQ(calls_of(DType::f32, 10), 0u);
  cudnn::standin().needs = 0;
  cudnn::standin().refuses = true;
  EXPECT_EQ(calls_of(DType::f32, 11), 0u);
  cudnn::standin().refuses = false;
}

// Rows outside of the whole are zero in a program, and the library reads them.
TEST(CudnnConvolution, BlocksWithHalos) {
  const Layer layer;
  kernels::test::Tensor x = random_tensor(layer.x, DType::f32, 1), w = random_tensor(layer.w, DType::f32, 2);
  for (int64_t i = 0; i < x.elements(); ++i)
    if (i / 24 % 7 == 0) x.set(i, 0);
  compare_on_device({.kind = "convolution",
                     .attributes = layer.attributes,
                     .indices = {{"height", tensor::DimIndex({{-1, 1}, {0, 6}}, 20), true}}},
                    {&x, &w}, {{layer.y, DType::f32}});
  EXPECT_EQ(cudnn::standin().calls.size(), 2u);
}

// A layout of a network of images, whose convolutions are computed by the library.
class CudnnImages : public testing::TestWithParam<DeviceLayout> {};

config::Settings small(const DeviceLayout& layout) {
  config::Settings s = settings_of(layout);
  s.train.global_batch = 4;
  s.train.micro_batch = 2 / s.parallel.data;
  s.train.label_smoothing = 0.1;
  return s;
}

int64_t convolutions() {
  int64_t count = 0;
  for (const Call& call : cudnn::standin().calls) count += call.convolutions;
  return count;
}

TEST_P(CudnnImages, Trains) {
  const config::Settings s = small(GetParam());
  const train::RandomSamples samples(s);
  const double tolerance = train::default_tolerance(s);
  const train::Comparison c = train::compare(
      {.settings = s, .data = samples, .steps = 2, .tolerance = tolerance, .loss_tolerance = tolerance / 10});
  EXPECT_EQ(c.first(), nullptr) << train::print(c);
  EXPECT_GT(convolutions(), 0);
}

// Graphs are built when programs are bound, never in a step.
TEST_P(CudnnImages, PlansOnceForAll) {
  const config::Settings s = small(GetParam());
  train::LayoutRun run(s);
  const int64_t bound = cudnn::standin().plans;
  EXPECT_TRUE(cudnn::standin().calls.empty());
  for (int64_t step = 0; step < 2; ++step)
    run.step(step, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, step, m, batch); });
  EXPECT_GT(convolutions(), 0);
  EXPECT_EQ(cudnn::standin().plans, bound);
}

INSTANTIATE_TEST_SUITE_P(Models, CudnnImages,
                         testing::Values(DeviceLayout{"lenet", "fp32", ""}, DeviceLayout{"lenet", "bf16", ""},
                                         DeviceLayout{"lenet", "fp32", "space=2"},
                                         DeviceLayout{"lenet", "fp32", "space=2 data=2 zero=1"}));

}  // namespace
}  // namespace kintsugi::tests::cudnn_convolution_test
