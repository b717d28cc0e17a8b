#include "kintsugi/kernels/reference/gradient_check.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::reference::pool_test {
namespace {

using namespace test;
using tensor::Window;

Attributes attributes_of(const Window& height, const Window& width) {
  Attributes attributes;
  tensor::set_windows(attributes, {{"height", height}, {"width", width}});
  return attributes;
}

Shape pooled(const Shape& x, const Window& height, const Window& width) {
  return {x[0], {"height", height.outputs(x[1].size)}, {"width", width.outputs(x[2].size)}, x[3]};
}

const Shape kX = {{"batch", 2}, {"height", 5}, {"width", 6}, {"channel", 3}};

const std::vector<std::pair<Window, Window>> kWindows = {
    {{.kernel = 2, .stride = 2}, {.kernel = 2, .stride = 2}},
    {{.kernel = 3, .stride = 2, .low = 1, .high = 1}, {.kernel = 3, .stride = 2, .low = 1, .high = 1}},
    {{.kernel = 3}, {.kernel = 2, .stride = 3, .dilation = 2, .low = 1}}};

}  // namespace

TEST(ReferencePool, SmallByHand) {
  const Window w = {.kernel = 2, .stride = 2, .low = 1, .high = 1};
  const Shape x_shape = {{"batch", 1}, {"height", 2}, {"width", 2}, {"channel", 1}}, y_shape = pooled(x_shape, w, w);
  Tensor x(x_shape, DType::f64, {-1, -2, -3, -4}), y(y_shape, DType::f64);
  run_reference({.kind = "max_pool", .attributes = attributes_of(w, w)}, {&x}, {&y});
  expect_close(y, {-1, -2, -3, -4}, 0, 0);  // padding does not count
  run_reference({.kind = "average_pool", .attributes = attributes_of(w, w)}, {&x}, {&y});
  expect_close(y, {-0.25, -0.5, -0.75, -1}, 0, 0);  // as zeros
  Attributes excluded = attributes_of(w, w);
  excluded.set("exclude_padding", int64_t{1});
  run_reference({.kind = "average_pool", .attributes = excluded}, {&x}, {&y});
  expect_close(y, {-1, -2, -3, -4}, 0, 0);
}

// The first of equal elements gets the gradient; windows that share an element add up there.
TEST(ReferencePool, GradientOfTheMaximumByHand) {
  const Window w = {.kernel = 2};
  const Shape x_shape = {{"batch", 1}, {"height", 2}, {"width", 3}, {"channel", 1}}, y_shape = pooled(x_shape, w, w);
  Tensor x(x_shape, DType::f64, {1, 5, 2, 5, 0, 3}), dy(y_shape, DType::f64, {10, 100}), dx(x_shape, DType::f64);
  run_reference({.kind = "max_pool_grad", .attributes = attributes_of(w, w)}, {&x, &dy}, {&dx});
  expect_close(dx, {0, 110, 0, 0, 0, 0}, 0, 0);
}

TEST(ReferencePool, Gradients) {
  for (const auto& [height, width] : kWindows)
    for (int64_t exclude : {0, 1})
      for (const std::string kind : {"max_pool", "average_pool"}) {
        Attributes attributes = attributes_of(height, width);
        attributes.set("exclude_padding", exclude);
        SCOPED_TRACE(kind + " " + to_string(attributes));
        GradientCheck check{
            .forward = {.kind = kind, .attributes = attributes},
            .ins = {random_tensor(kX, DType::f64, 1)},
            .outs = {{pooled(kX, height, width), DType::f64}},
            .with_respect_to = {0},
            .gradients = [&](auto& ins, auto&, auto& dy) {
              std::vector<Tensor> d = {Tensor(kX, DType::f64)};
              if (kind == "max_pool") {
                run_reference({.kind = "max_pool_grad", .attributes = attributes}, {&ins[0], &dy[0]}, {&d[0]});
              } else {
                run_reference({.kind = "average_pool_grad", .attributes = attributes}, {&dy[0]}, {&d[0]});
              }
              return d;
            }};
        check_gradient(check);
      }
}

// Absent positions are not zeros.
TEST(ReferencePool, AbsentPositionsDoNotCount) {
  const Window w = {.kernel = 2, .stride = 2};
  const Shape x_shape = {{"batch", 1}, {"height", 4}, {"channel", 1}};
  Attributes attributes = {{"exclude_padding", int64_t{1}}};
  tensor::set_windows(attributes, {{"height", w}});
  Tensor x(x_shape, DType::f64, {0, -2, -3, -4}), y({{"batch", 1}, {"height", 2}, {"channel", 1}}, DType::f64);
  const std::vector<NamedIndex> indices = {{"height", tensor::DimIndex({{0, 2}}, 2)},
                                           {"height", tensor::DimIndex({{-1, 1}, {0, 3}}, 3), true}};
  run_reference({.kind = "max_pool", .attributes = attributes, .indices = indices}, {&x}, {&y});
  expect_close(y, {-2, -3}, 0, 0);
  run_reference({.kind = "average_pool", .attributes = attributes, .indices = indices}, {&x}, {&y});
  expect_close(y, {-2, -3.5}, 0, 0);
}

}  // namespace kintsugi::kernels::reference::pool_test
