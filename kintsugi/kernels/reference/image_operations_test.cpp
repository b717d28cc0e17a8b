// Transposed convolutions, resampling, group norms and operations that scale or join images, compared with finite
// differences and small cases by hand.
#include "kintsugi/kernels/reference/gradient_check.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::reference::image_operations_test {
namespace {

using namespace test;
using tensor::Window;

const Shape kX = {{"batch", 2}, {"height", 3}, {"width", 4}, {"channel", 6}};

Attributes windows_of(const Window& height, const Window& width) {
  Attributes attributes;
  tensor::set_windows(attributes, {{"height", height}, {"width", width}});
  return attributes;
}

// A gradient that a kernel computes from dy alone.
void check_linear(const Trial& forward, const Trial& backward, const Shape& x, const Shape& y) {
  GradientCheck check{.forward = forward,
                      .ins = {random_tensor(x, DType::f64, 1)},
                      .outs = {{y, DType::f64}},
                      .with_respect_to = {0},
                      .gradients = [&](auto&, auto&, auto& dy) {
                        std::vector<Tensor> d = {Tensor(x, DType::f64)};
                        run_reference(backward, {&dy[0]}, {&d[0]});
                        return d;
                      }};
  check_gradient(check);
}

}  // namespace

TEST(ReferenceTransposedConvolution, ByHand) {
  Attributes attributes;
  tensor::set_windows(attributes, {{"width", {.kernel = 3, .stride = 2, .low = 1}}});
  Tensor x({{"batch", 1}, {"width", 2}, {"channel", 1}}, DType::f64, {1, 10}),
      w({{"kernel_width", 3}, {"filter", 1}, {"channel", 1}}, DType::f64, {1, 2, 3}),
      y({{"batch", 1}, {"width", 4}, {"filter", 1}}, DType::f64);
  run_reference({.kind = "transposed_convolution", .attributes = attributes}, {&x, &w}, {&y});
  expect_close(y, {2, 3 + 10, 20, 30}, 0, 0);
}

TEST(ReferenceTransposedConvolution, Gradients) {
  for (const auto& [height, width] : std::vector<std::pair<Window, Window>>{
           {{.kernel = 2, .stride = 2}, {.kernel = 3, .low = 1, .high = 1}},
           {{.kernel = 4, .stride = 2, .low = 1, .high = 1}, {.kernel = 2, .stride = 3}}}) {
    const Attributes attributes = windows_of(height, width);
    const Shape w = {{"kernel_height", height.kernel}, {"kernel_width", width.kernel}, {"filter", 2}, kX[3]},
                y = {kX[0],
                     {"height", height.reach(3) - height.low - height.high},
                     {"width", width.reach(4) - width.low - width.high},
                     {"filter", 2}};
    GradientCheck check{
        .forward = {.kind = "transposed_convolution", .attributes = attributes},
        .ins = {random_tensor(kX, DType::f64, 1), random_tensor(w, DType::f64, 2)},
        .outs = {{y, DType::f64}},
        .with_respect_to = {0, 1},
        .gradients = [&](auto& ins, auto&, auto& dy) {
          std::vector<Tensor> d = {Tensor(kX, DType::f64), Tensor(w, DType::f64)};
          run_reference({.kind = "convolution", .attributes = attributes}, {&dy[0], &ins[1]}, {&d[0]});
          run_reference({.kind = "convolution_grad_weight", .attributes = attributes}, {&dy[0], &ins[0]}, {&d[1]});
          return d;
        }};
    check_gradient(check);
  }
}

TEST(ReferenceUpsample, ByHand) {
  const Shape x_shape = {{"batch", 1}, {"width", 3}, {"channel", 1}},
              y_shape = {{"batch", 1}, {"width", 6}, {"channel", 1}};
  Tensor x(x_shape, DType::f64, {1, 5, 9}), y(y_shape, DType::f64);
  Attributes attributes = {{"mode", "nearest"}, {"positions_width", int64_t{3}}};
  tensor::set_windows(attributes, {{"width", {.kernel = 2, .stride = 2}}});
  run_reference({.kind = "upsample", .attributes = attributes}, {&x}, {&y});
  expect_close(y, {1, 1, 5, 5, 9, 9}, 0, 0);
  attributes.set("mode", "linear");
  tensor::set_windows(attributes, {{"width", {.kernel = 4, .stride = 2, .low = 1, .high = 1}}});
  run_reference({.kind = "upsample", .attributes = attributes}, {&x}, {&y});
  expect_close(y, {1, 2, 4, 6, 8, 9}, 1e-15, 0);
}

TEST(ReferenceUpsample, Gradients) {
  for (const auto& [mode, height, width] : std::vector<std::tuple<const char*, Window, Window>>{
           {"nearest", {.kernel = 2, .stride = 2}, {.kernel = 3, .stride = 3}},
           {"linear",
            {.kernel = 4, .stride = 2, .low = 1, .high = 1},
            {.kernel = 5, .stride = 3, .low = 1, .high = 1}}}) {
    Attributes attributes = windows_of(height, width);
    attributes.set("mode", mode);
    attributes.set("positions_height", kX[1].size);
    attributes.set("positions_width", kX[2].size);
    check_linear({.kind = "upsample", .attributes = attributes}, {.kind = "upsample_grad", .attributes = attributes},
                 kX, {kX[0], {"height", 6}, {"width", 12}, kX[3]});
  }
}

// Bins of 3 of 2 positions overlap; those of 2 of 4 do not.
TEST(ReferenceAdaptivePool, ByHandAndGradients) {
  const Shape y_shape = {{"batch", 1}, {"height", 3}, {"width", 2}, {"channel", 1}};
  Tensor x({{"batch", 1}, {"from_height", 2}, {"from_width", 4}, {"channel", 1}}, DType::f64,
           {1, 3, 5, 7, 11, 13, 15, 17}),
      y(y_shape, DType::f64);
  run_reference({.kind = "adaptive_pool"}, {&x}, {&y});
  expect_close(y, {2, 6, 7, 11, 12, 16}, 1e-15, 0);
  check_linear({.kind = "adaptive_pool"}, {.kind = "adaptive_pool_grad"},
               {kX[0], {"from_height", 3}, {"from_width", 4}, kX[3]}, {kX[0], {"height", 2}, {"width", 6}, kX[3]});
}

TEST(ReferenceConcatenate, ByHandAndBack) {
  Tensor a({{"batch", 2}, {"of_a", 1}}, DType::f64, {1, 2}), b({{"batch", 2}, {"of_b", 2}}, DType::f64, {3, 4, 5, 6}),
      y({{"batch", 2}, {"channel", 3}}, DType::f64), back({{"batch", 2}, {"of_b", 2}}, DType::f64);
  run_reference({.kind = "concatenate", .attributes = {{"whole", "of_a of_b channel"}}}, {&a, &b}, {&y});
  expect_close(y, {1, 3, 4, 2, 5, 6}, 0, 0);
  run_reference({.kind = "slice", .attributes = {{"whole", "channel of_b"}, {"first", int64_t{1}}}}, {&y}, {&back});
  expect_close(back, {3, 4, 5, 6}, 0, 0);
}

// A sample is kept or dropped as a whole, by its index in the global batch.
TEST(ReferenceDropPath, SamplesByTheirNumber) {
  const Shape shape = {{"batch", 64}, {"channel", 3}};
  const Attributes attributes = {{"p", 0.25}, {"key", "a"}};
  Tensor x = filled(shape, DType::f64, 1.0), y(shape, DType::f64), later(shape, DType::f64);
  run_reference({.kind = "drop_path", .attributes = attributes, .numbers = {.seed = 1, .step = 2}}, {&x}, {&y});
  run_reference({.kind = "drop_path", .attributes = attributes, .numbers = {.seed = 1, .step = 2, .batch_offset = 32}},
                {&x}, {&later});
  int kept = 0;
  for (int64_t n = 0; n < 64; ++n) {
    kept += y.get(3 * n) > 0;
    for (int64_t c = 0; c < 3; ++c) {
      EXPECT_EQ(y.get(3 * n + c), y.get(3 * n) > 0 ? 1 / 0.75 : 0.0);
      if (n < 32) {
        EXPECT_EQ(later.get(3 * n + c), y.get(3 * (n + 32) + c));
      }
    }
  }
  EXPECT_GT(kept, 32);
  EXPECT_LT(kept, 64);
}

TEST(ReferenceLeakyRelu, Gradients) {
  const Attributes attributes = {{"slope", 0.3}};
  GradientCheck check{
      .forward = {.kind = "leaky_relu", .attributes = attributes},
      .ins = {random_tensor(kX, DType::f64, 1)},
      .outs = {{kX, DType::f64}},
      .with_respect_to = {0},
      .gradients = [&](auto& ins, auto&, auto& dy) {
        std::vector<Tensor> d = {Tensor(kX, DType::f64)};
        run_reference({.kind = "leaky_relu_grad", .attributes = attributes}, {&ins[0], &dy[0]}, {&d[0]});
        return d;
      }};
  check_gradient(check);
}

TEST(ReferenceChannelScale, Gradients) {
  const Shape channel = {kX[3]};
  GradientCheck check{.forward = {.kind = "channel_scale"},
                      .ins = {random_tensor(kX, DType::f64, 1), random_tensor(channel, DType::f64, 2)},
                      .outs = {{kX, DType::f64}},
                      .with_respect_to = {0, 1},
                      .gradients = [&](auto& ins, auto&, auto& dy) {
                        std::vector<Tensor> d = {Tensor(kX, DType::f64), Tensor(channel, DType::f64)};
                        run_reference({.kind = "channel_scale"}, {&dy[0], &ins[1]}, {&d[0]});
                        run_reference({.kind = "channel_scale_sums"}, {&ins[0], &dy[0]}, {&d[1]});
                        return d;
                      }};
  check_gradient(check);
}

// Including the statistics: forward is both operations.
TEST(ReferenceGroupNorm, GradientsThroughTheStatistics) {
  for (const int64_t groups : {1, 2, 6}) {
    const Attributes attributes = {
        {"epsilon", 1e-3}, {"groups", groups}, {"channels", int64_t{6}}, {"count", int64_t{12 * 6} / groups}};
    const Shape channel = {kX[3]}, sums = {kX[0], {"moment", 2}, {"norm_group", groups}};
    Tensor x = random_tensor(kX, DType::f64, 1), gamma = random_tensor(channel, DType::f64, 2),
           beta = random_tensor(channel, DType::f64, 3), dy = random_tensor(kX, DType::f64, 4);
    const auto forward = [&] {
      Tensor statistics(sums, DType::f64), y(kX, DType::f64);
      run_reference({.kind = "group_statistics", .attributes = attributes}, {&x}, {&statistics});
      run_reference({.kind = "group_norm", .attributes = attributes}, {&x, &gamma, &beta, &statistics}, {&y});
      double loss = 0;
      for (int64_t i = 0; i < y.elements(); ++i) loss += y.get(i) * dy.get(i);
      return loss;
    };
    Tensor statistics(sums, DType::f64), dgamma(channel, DType::f64), dbeta(channel, DType::f64),
        made(sums, DType::f64), dx(kX, DType::f64);
    run_reference({.kind = "group_statistics", .attributes = attributes}, {&x}, {&statistics});
    run_reference({.kind = "group_norm_sums", .attributes = attributes}, {&x, &gamma, &statistics, &dy},
                  {&dgamma, &dbeta, &made});
    run_reference({.kind = "group_norm_grad", .attributes = attributes}, {&x, &gamma, &statistics, &made, &dy}, {&dx});
    for (const auto& [value, gradient] : {std::pair{&x, &dx}, std::pair{&gamma, &dgamma}, std::pair{&beta, &dbeta}})
      for (int64_t i = 0; i < value->elements(); ++i) {
        constexpr double kStep = 1e-5;
        const double at = value->get(i);
        value->set(i, at + kStep);
        const double above = forward();
        value->set(i, at - kStep);
        const double below = forward();
        value->set(i, at);
        EXPECT_NEAR(gradient->get(i), (above - below) / (2 * kStep), 1e-6) << groups << " groups, element " << i;
      }
  }
}

// A class per pixel, with some weight spread over all classes.
TEST(ReferenceClassLoss, GradientsOfSmoothedPixels) {
  const Shape logits = {{"batch", 2}, {"height", 3}, {"width", 2}, {"class", 4}},
              pixels = {{"batch", 2}, {"height", 3}, {"width", 2}};
  const Type scalar = {Shape{}, DType::f64};
  const Attributes attributes = {{"smoothing", 0.1}};
  GradientCheck check{.forward = {.kind = "class_loss", .attributes = attributes},
                      .ins = {random_tensor(logits, DType::f64, 1), random_integers(pixels, 2, -1, 4),
                              random_tensor({{"batch", 2}}, DType::f32, 3, 0.5, 2.0)},
                      .outs = {scalar, scalar},
                      .with_respect_to = {0},
                      .gradients =
                          [&](auto& ins, auto&, auto& dy) {
                            std::vector<Tensor> d = {Tensor(logits, DType::f64)};
                            run_reference({.kind = "class_loss_grad", .attributes = attributes},
                                          {&ins[0], &ins[1], &ins[2], &dy[0]}, {&d[0]});
                            return d;
                          },
                      .num_cotangents = 1};
  check_gradient(check);
}

// log(2) for one of two equal logits, for any smoothing; the others by hand.
TEST(ReferenceClassLoss, SmoothingByHand) {
  Tensor logits({{"batch", 2}, {"class", 2}}, DType::f64, {0, 0, 3, 1}), weights({{"batch", 2}}, DType::f32, {1, 1}),
      loss(Shape{}, DType::f64), count(Shape{}, DType::f64), labels = random_integers({{"batch", 2}}, 1, 0, 1);
  run_reference({.kind = "class_loss", .attributes = {{"smoothing", 0.2}}}, {&logits, &labels, &weights},
                {&loss, &count});
  EXPECT_NEAR(loss.get(0), std::log(2.0) + std::log(std::exp(3.0) + std::exp(1.0)) - 0.8 * 3 - 0.2 * 2, 1e-12);
  EXPECT_EQ(count.get(0), 2);
}

}  // namespace kintsugi::kernels::reference::image_operations_test
