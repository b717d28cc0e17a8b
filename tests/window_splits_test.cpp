// Each operation with a window, split along the dim of the window over 2 to 4 ranks, as the whole: kernels 1 to 7,
// strides and dilations 1 to 3, padding of 0 to 3 positions on either side, sizes that do not divide, and ranks without
// any output; by the reference kernels, and by those of the CPU in fp64 and fp32.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/ops/rows.h"
#include "tests/row_trial.h"

namespace kintsugi::tests::window_splits_test {
namespace {

using tensor::Attributes;
using tensor::DType;
using tensor::Window;

RowTrial trial(std::string_view kind, const Attributes& attributes, std::vector<Type> ins, Type out) {
  std::vector<std::string> names(ins.size(), "x");
  return {.row = ops::operations().find(kind),
          .kernel = std::string(kind),
          .attributes = attributes,
          .ins = std::move(ins),
          .outs = {std::move(out)},
          .names = std::move(names)};
}

constexpr std::string_view kDim = "height";

Attributes attributes_of(const Window& window) {
  Attributes attributes;
  tensor::set_windows(attributes, {{std::string(kDim), window}});
  return attributes;
}

Shape values(int64_t positions, std::string_view last, int64_t size) {
  return {{"batch", 2}, {std::string(kDim), positions}, {std::string(last), size}};
}

// All operations with this window over `inputs` positions: convolutions of 2 or 4 channels in `groups`, and pools.
std::vector<RowTrial> trials_of(const Window& window, int64_t inputs, int64_t groups, DType dtype) {
  const int64_t outputs = window.outputs(inputs);
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  Attributes attributes = attributes_of(window), divided = attributes, grouped = attributes;
  divided.set("exclude_padding", int64_t{1});
  if (groups > 1) grouped.set("groups", groups);
  const Type x = {values(inputs, "channel", 2 * groups), dtype}, y = {values(outputs, "channel", 2 * groups), dtype},
             of_filters = {values(outputs, "filter", 3 * groups), dtype},
             w = {{{tensor::kernel_dim(kDim), window.kernel},
                   {groups > 1 ? "group_channel" : "channel", 2},
                   {"filter", 3 * groups}},
                  dtype};
  std::vector<RowTrial> list = {
      trial("convolution", grouped, {x, w}, of_filters),
      trial("convolution_grad_input", grouped, {of_filters, w}, x),
      trial("convolution_grad_weight", grouped, {x, of_filters}, {w.shape, wide}),
      trial("max_pool", attributes, {x}, y),
      trial("max_pool_grad", attributes, {x, y}, x),
      trial("average_pool", attributes, {x}, y),
      trial("average_pool_grad", divided, {y}, x),
  };
  if (groups > 1) return list;
  const Type upward = {{{tensor::kernel_dim(kDim), window.kernel}, {"filter", 3}, {"channel", 2}}, dtype};
  list.push_back(trial("transposed_convolution", attributes, {y, upward}, {values(inputs, "filter", 3), dtype}));
  return list;
}

// The parts are computed by `set`, the whole by the reference.
std::string check(const kernels::KernelSet& set, const RowTrial& t) {
  const double tolerance = t.ins[0].dtype == DType::f64 ? 1e-10 : 1e-4;
  const auto run = [&](const RowTrial& part, std::vector<Tensor> ins, const std::vector<Type>& outs, RowCall call) {
    return run_row_on(set, part, std::move(ins), outs, call);
  };
  const std::vector<Tensor> ins = draw(t, 1, 1), whole = run_row(t, ins, t.outs);
  for (const int ranks : {2, 3, 4})
    if (std::string wrong = check_window_split(t, std::string(kDim), ranks, ins, whole, run, tolerance); !wrong.empty())
      return std::string(set.name()) + " kernels: " + wrong;
  return "";
}

}  // namespace

struct Computed {
  std::string name;
  std::unique_ptr<kernels::KernelSet> (*kernels)();
  DType dtype;
};

void PrintTo(const Computed& c, std::ostream* out) {
  *out << c.name;
}

class WindowSplits : public testing::TestWithParam<Computed> {};

TEST_P(WindowSplits, AsTheWhole) {
  const auto set = GetParam().kernels();
  std::mt19937_64 random(1);
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  for (int64_t kernel = 1; kernel <= 7; ++kernel)
    for (int64_t stride = 1; stride <= 3; ++stride)
      for (int64_t dilation = 1; dilation <= 3; ++dilation) {
        const Window window = {
            .kernel = kernel, .stride = stride, .dilation = dilation, .low = below(4), .high = below(4)};
        const int64_t fewest = std::max<int64_t>(1, window.extent() - window.low - window.high);
        for (const RowTrial& t : trials_of(window, fewest + below(16), 1 + below(2), GetParam().dtype))
          EXPECT_EQ(check(*set, t), "");
      }
}

TEST_P(WindowSplits, Upsampled) {
  const auto set = GetParam().kernels();
  const DType dtype = GetParam().dtype;
  for (const char* mode : {"nearest", "linear"})
    for (const int64_t factor : {1, 2, 3, 4, 5})
      for (const int64_t positions : {1, 2, 3, 5, 8}) {
        const Type x = {values(positions, "channel", 3), dtype}, y = {values(positions * factor, "channel", 3), dtype};
        Attributes attributes;
        ops::set_upsample(attributes, mode, x.shape, {{std::string(kDim), factor}});
        EXPECT_EQ(check(*set, trial("upsample", attributes, {x}, y)), "");
        EXPECT_EQ(check(*set, trial("upsample_grad", attributes, {y}, x)), "");
      }
}

INSTANTIATE_TEST_SUITE_P(All, WindowSplits,
                         testing::Values(Computed{"reference_fp64", kernels::reference_kernels, DType::f64},
                                         Computed{"cpu_fp64", kernels::cpu_kernels, DType::f64},
                                         Computed{"cpu_fp32", kernels::cpu_kernels, DType::f32}),
                         [](const auto& info) { return info.param.name; });

}  // namespace kintsugi::tests::window_splits_test
