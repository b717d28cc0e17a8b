#include "kintsugi/kernels/reference/gradient_check.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::reference::convolution_test {
namespace {

using namespace test;
using tensor::DimWindow;

// A convolution over dims of these sizes: [batch:2 dims... channel:`channels`] to `filters`.
struct Case {
  std::vector<std::pair<int64_t, tensor::Window>> dims;  // size and window
  int64_t channels = 2, filters = 3, groups = 1;
};

constexpr std::string_view kNames[] = {"depth", "height", "width"};

struct Shapes {
  Attributes attributes;
  Shape x, w, y;
};

Shapes shapes_of(const Case& c) {
  std::vector<DimWindow> windows;
  std::vector<tensor::Dim> x = {{"batch", 2}}, w, y = {{"batch", 2}};
  for (size_t i = 0; i < c.dims.size(); ++i) {
    const std::string name(kNames[i + std::size(kNames) - c.dims.size()]);
    const auto& [size, window] = c.dims[i];
    windows.push_back({name, window});
    x.push_back({name, size});
    w.push_back({tensor::kernel_dim(name), window.kernel});
    y.push_back({name, window.outputs(size)});
  }
  x.push_back({"channel", c.channels});
  w.insert(w.end(), {{c.groups > 1 ? "group_channel" : "channel", c.channels / c.groups}, {"filter", c.filters}});
  y.push_back({"filter", c.filters});
  Shapes s = {{{"groups", c.groups}}, Shape(x), Shape(w), Shape(y)};
  tensor::set_windows(s.attributes, windows);
  return s;
}

void check(const Case& c) {
  const Shapes s = shapes_of(c);
  SCOPED_TRACE(to_string(s.x) + " " + to_string(s.w) + " " + to_string(s.attributes));
  GradientCheck check{
      .forward = {.kind = "convolution", .attributes = s.attributes},
      .ins = {random_tensor(s.x, DType::f64, 1), random_tensor(s.w, DType::f64, 2)},
      .outs = {{s.y, DType::f64}},
      .with_respect_to = {0, 1},
      .gradients = [&](auto& ins, auto&, auto& dy) {
        std::vector<Tensor> d = {Tensor(s.x, DType::f64), Tensor(s.w, DType::f64)};
        run_reference({.kind = "convolution_grad_input", .attributes = s.attributes}, {&dy[0], &ins[1]}, {&d[0]});
        run_reference({.kind = "convolution_grad_weight", .attributes = s.attributes}, {&ins[0], &dy[0]}, {&d[1]});
        return d;
      }};
  check_gradient(check);
}

}  // namespace

TEST(ReferenceConvolution, SmallByHand) {
  // Two channels in, one out; a window of 2 with one position of padding before: -, 1, 2, 3.
  const Shapes s = shapes_of({.dims = {{3, {.kernel = 2, .low = 1}}}, .channels = 2, .filters = 1});
  Tensor x(s.x, DType::f64, {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60}), w(s.w, DType::f64, {1, 2, 3, 4}),
      y(s.y, DType::f64);
  run_reference({.kind = "convolution", .attributes = s.attributes}, {&x, &w}, {&y});
  // 3 x + 4 y of the second position plus 1 x + 2 y of the first
  expect_close(y, {43, 86 + 21, 129 + 42, 172, 215 + 84, 258 + 105}, 0, 0);
}

TEST(ReferenceConvolution, Gradients) {
  check({.dims = {{5, {.kernel = 3}}}});
  check({.dims = {{7, {.kernel = 4, .stride = 3, .low = 1, .high = 2}}}});
  check({.dims = {{6, {.kernel = 2, .dilation = 3}}}});
  check({.dims = {{4, {.kernel = 3, .low = 1, .high = 1}}, {5, {.kernel = 3, .low = 1, .high = 1}}}});
  check({.dims = {{5, {.kernel = 3, .stride = 2, .low = 1, .high = 1}}, {4, {.kernel = 1, .stride = 2}}}});
  check({.dims = {{5, {.kernel = 2, .dilation = 2}}, {3, {.kernel = 2}}}, .channels = 3, .filters = 1});
  check({.dims = {{3, {.kernel = 2}}, {3, {.kernel = 3, .low = 1, .high = 1}}, {2, {.kernel = 2, .stride = 2}}}});
}

TEST(ReferenceConvolution, Groups) {
  check({.dims = {{4, {.kernel = 2}}}, .channels = 4, .filters = 6, .groups = 2});
  check({.dims = {{3, {.kernel = 3, .low = 1, .high = 1}}, {3, {.kernel = 2}}},
         .channels = 3,
         .filters = 3,
         .groups = 3});
}

// A filter of one group does not see the other's channels.
TEST(ReferenceConvolution, GroupsAreApart) {
  const Shapes s = shapes_of({.dims = {{2, {.kernel = 1}}}, .channels = 2, .filters = 2, .groups = 2});
  Tensor x(s.x, DType::f64, {1, 2, 3, 4, 5, 6, 7, 8}), w(s.w, DType::f64, {10, 100}), y(s.y, DType::f64);
  run_reference({.kind = "convolution", .attributes = s.attributes}, {&x, &w}, {&y});
  expect_close(y, {10, 200, 30, 400, 50, 600, 70, 800}, 0, 0);
}

TEST(ReferenceConvolution, GradientOfTheWeightAccumulates) {
  const Shapes s = shapes_of({.dims = {{5, {.kernel = 3}}}});
  Tensor x = random_tensor(s.x, DType::bf16, 1), dy = random_tensor(s.y, DType::bf16, 2), dw(s.w, DType::f32);
  run_reference({.kind = "convolution_grad_weight", .attributes = s.attributes}, {&x, &dy}, {&dw});
  Tensor more = dw;
  run_reference({.kind = "convolution_grad_weight", .attributes = s.attributes, .accumulate = 1}, {&x, &dy}, {&more});
  for (int64_t i = 0; i < dw.elements(); ++i) EXPECT_NEAR(more.get(i), 2 * dw.get(i), 1e-5);
}

}  // namespace kintsugi::kernels::reference::convolution_test
