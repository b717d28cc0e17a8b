#include <limits>

#include "kintsugi/kernels/cpu/compare_test.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::image_operations_test {
namespace {

using namespace test;
using tensor::Window;

const Shape kX = {{"batch", 3}, {"height", 5}, {"width", 4}, {"channel", 12}}, kChannel = {{"channel", 12}};

}  // namespace

TEST(CpuTransposedConvolution, AsTheReference) {
  for (const auto& [height, width] : std::vector<std::pair<Window, Window>>{
           {{.kernel = 2, .stride = 2}, {.kernel = 2, .stride = 2}},
           {{.kernel = 4, .stride = 2, .low = 1, .high = 1}, {.kernel = 3, .low = 1, .high = 1}}}) {
    Attributes attributes;
    tensor::set_windows(attributes, {{"height", height}, {"width", width}});
    const Shape w = {{"kernel_height", height.kernel}, {"kernel_width", width.kernel}, {"filter", 5}, kX[3]},
                y = {kX[0],
                     {"height", height.reach(5) - height.low - height.high},
                     {"width", width.reach(4) - width.low - width.high},
                     {"filter", 5}};
    for (DType dtype : kFastTypes)
      for (int threads : {1, 2}) {
        Tensor x = random_tensor(kX, dtype, 1), weights = random_tensor(w, dtype, 2);
        compare({.kind = "transposed_convolution", .attributes = attributes, .threads = threads}, {&x, &weights},
                {Tensor(y, dtype)}, {1e-5, 1e-4});
      }
  }
}

TEST(CpuResample, AsTheReference) {
  with_each_target([] {
    for (DType dtype : kFastTypes) {
      Tensor x = random_tensor(kX, dtype, 1);
      const Shape longer = {kX[0], {"height", 10}, {"width", 12}, kX[3]},
                  other = {kX[0], {"height", 3}, {"width", 6}, kX[3]};
      Tensor dy = random_tensor(longer, dtype, 2), dother = random_tensor(other, dtype, 3);
      for (const char* mode : {"nearest", "linear"}) {
        const bool linear = std::string(mode) == "linear";
        Attributes attributes = {{"mode", mode}, {"positions_height", kX[1].size}, {"positions_width", kX[2].size}};
        tensor::set_windows(attributes, {{"height", linear ? Window{.kernel = 4, .stride = 2, .low = 1, .high = 1}
                                                           : Window{.kernel = 2, .stride = 2}},
                                         {"width", linear ? Window{.kernel = 5, .stride = 3, .low = 1, .high = 1}
                                                          : Window{.kernel = 3, .stride = 3}}});
        compare({.kind = "upsample", .attributes = attributes, .threads = 2}, {&x}, {Tensor(longer, dtype)});
        compare({.kind = "upsample_grad", .attributes = attributes, .threads = 2}, {&dy}, {Tensor(kX, dtype)},
                {1e-5, 1e-5});
      }
      const Shape from = {kX[0], {"from_height", 5}, {"from_width", 4}, kX[3]};
      Tensor fine = random_tensor(from, dtype, 1);
      compare({.kind = "adaptive_pool", .threads = 2}, {&fine}, {Tensor(other, dtype)});
      compare({.kind = "adaptive_pool_grad", .threads = 2}, {&dother}, {Tensor(from, dtype)});
    }
  });
}

TEST(CpuImageOperations, AsTheReference) {
  with_each_target([] {
    for (DType dtype : kFastTypes)
      for (int threads : {1, 2, 5}) {
        Tensor x = random_tensor(kX, dtype, 1), dy = random_tensor(kX, dtype, 2),
               gamma = random_tensor(kChannel, dtype, 3);
        const Attributes slope = {{"slope", 0.3}}, path = {{"p", 0.4}, {"key", "a"}};
        compare({.kind = "leaky_relu", .attributes = slope, .threads = threads}, {&x}, {Tensor(kX, dtype)});
        compare({.kind = "leaky_relu_grad", .attributes = slope, .threads = threads}, {&x, &dy}, {Tensor(kX, dtype)});
        compare({.kind = "drop_path", .attributes = path, .numbers = {.seed = 3, .step = 5}, .threads = threads}, {&x},
                {Tensor(kX, dtype)});
        compare({.kind = "channel_scale", .threads = threads}, {&x, &gamma}, {Tensor(kX, dtype)});
        compare({.kind = "channel_scale_sums", .threads = threads}, {&x, &dy}, {Tensor(kChannel, DType::f32)});
      }
  });
}

TEST(CpuGroupNorm, AsTheReference) {
  with_each_target([] {
    for (DType dtype : kFastTypes)
      for (const int64_t groups : {1, 4, 12}) {
        const Attributes attributes = {
            {"epsilon", 1e-5}, {"groups", groups}, {"channels", int64_t{12}}, {"count", int64_t{20 * 12} / groups}};
        const Shape sums = {kX[0], {"moment", 2}, {"norm_group", groups}};
        Tensor x = random_tensor(kX, dtype, 1), dy = random_tensor(kX, dtype, 2),
               gamma = random_tensor(kChannel, dtype, 3), beta = random_tensor(kChannel, dtype, 4),
               statistics(sums, DType::f64), made(sums, DType::f64), dgamma(kChannel, DType::f32),
               dbeta(kChannel, DType::f32);
        const auto trial = [&](const char* kind) {
          return Trial{.kind = kind, .attributes = attributes, .threads = 2};
        };
        compare(trial("group_statistics"), {&x}, {Tensor(sums, DType::f64)});
        static const auto reference = reference_kernels();
        run_kernel(*reference, trial("group_statistics"), {&x}, {&statistics});
        run_kernel(*reference, trial("group_norm_sums"), {&x, &gamma, &statistics, &dy}, {&dgamma, &dbeta, &made});
        compare(trial("group_norm"), {&x, &gamma, &beta, &statistics}, {Tensor(kX, dtype)}, {1e-5, 1e-5});
        compare(trial("group_norm_sums"), {&x, &gamma, &statistics, &dy},
                {Tensor(kChannel, DType::f32), Tensor(kChannel, DType::f32), Tensor(sums, DType::f64)}, {1e-5, 1e-5});
        compare(trial("group_norm_grad"), {&x, &gamma, &statistics, &made, &dy}, {Tensor(kX, dtype)}, {1e-5, 1e-5});
      }
  });
}

// Squares of large values do not cancel.
TEST(CpuBatchNorm, StatisticsOfAMeanFarFromZero) {
  with_each_target([] {
    const Shape shape = {{"batch", 100}, {"channel", 9}};
    Tensor x(shape, DType::f32), statistics({{"moment", 2}, {"channel", 9}}, DType::f64);
    for (int64_t i = 0; i < x.elements(); ++i) x.set(i, 1000.0 + (i / 9 % 2 ? 0.25 : -0.25));
    static const auto cpu = cpu_kernels();
    run_kernel(*cpu, {.kind = "batch_statistics", .threads = 2}, {&x}, {&statistics});
    for (int64_t c = 0; c < 9; ++c) {
      EXPECT_EQ(statistics.get(c), 100 * 1000.0);
      EXPECT_EQ(statistics.get(9 + c), 100 * (1000.0 * 1000.0 + 0.0625));
    }
  });
}

TEST(CpuClassLoss, OfSmoothedPixels) {
  const Shape shape = {{"batch", 2}, {"height", 3}, {"width", 5}, {"class", 4}},
              pixels = {{"batch", 2}, {"height", 3}, {"width", 5}};
  const Attributes attributes = {{"smoothing", 0.1}};
  Tensor labels = random_integers(pixels, 2, -1, 4), weights = random_tensor({{"batch", 2}}, DType::f32, 3, 0.5, 2.0),
         dloss(Shape{}, DType::f64, {0.7});
  for (DType dtype : kFastTypes) {
    Tensor logits = random_tensor(shape, dtype, 1);
    compare({.kind = "class_loss", .attributes = attributes}, {&logits, &labels, &weights},
            {Tensor(Shape{}, DType::f64), Tensor(Shape{}, DType::f64)});
    compare({.kind = "class_loss_grad", .attributes = attributes}, {&logits, &labels, &weights, &dloss},
            {Tensor(shape, dtype)});
  }
}

TEST(CpuFieldErrors, BySampleAndByTarget) {
  const Shape shape = {{"batch", 3}, {"height", 4}, {"width", 5}, {"target", 2}}, samples = {{"batch", 3}},
              of_target = {{"target", 2}};
  Tensor targets = random_tensor(shape, DType::f32, 2), derrors = random_tensor(samples, DType::f64, 3),
         dloss(Shape{}, DType::f64, {0.7});
  targets.set(7, std::numeric_limits<double>::quiet_NaN());
  const std::vector<NamedIndex> padded = {{"batch", DimIndex({{4, 2}, {-1, 1}}, 6)},
                                          {"height", DimIndex({{0, 3}, {-1, 1}}, 3)}};
  for (DType dtype : kFastTypes)
    for (const auto& indices : {std::vector<NamedIndex>{}, padded}) {
      Tensor y = random_tensor(shape, dtype, 1);
      for (const Shape& sums : {samples, of_target})
        compare({.kind = "field_errors", .indices = indices}, {&y, &targets},
                {Tensor(sums, DType::f64), Tensor(sums, DType::f64)});
      compare({.kind = "field_errors_grad", .indices = indices}, {&y, &targets, &derrors}, {Tensor(shape, dtype)});
      compare({.kind = "squared_error", .indices = indices}, {&y, &targets},
              {Tensor(Shape{}, DType::f64), Tensor(Shape{}, DType::f64)});
      compare({.kind = "squared_error_grad", .indices = indices}, {&y, &targets, &dloss}, {Tensor(shape, dtype)});
    }
}

}  // namespace kintsugi::kernels::image_operations_test
