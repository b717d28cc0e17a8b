#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::rms_norm_test {
namespace {

using namespace test;

const Shape kX = {{"batch", 2}, {"seq", 3}, {"embed", 7}};
const Shape kEmbed = {{"embed", 7}};

TEST(ReferenceRmsNorm, SmallRowByHand) {
  Tensor x({{"embed", 2}}, DType::f64, {1, 7}), gamma({{"embed", 2}}, DType::f64, {1, 2}),
      y({{"embed", 2}}, DType::f64);
  run_reference({.kind = "rms_norm", .attributes = {{"epsilon", 24.0}}}, {&x, &gamma}, {&y});
  expect_close(y, {1 / 7.0, 2}, 1e-14, 0);  // mean of squares 25, with epsilon 49
}

TEST(ReferenceRmsNorm, AnOffsetIsAddedToGamma) {
  Tensor x({{"embed", 2}}, DType::f64, {1, 7}), gamma({{"embed", 2}}, DType::f64, {1, 2}),
      y({{"embed", 2}}, DType::f64);
  run_reference({.kind = "rms_norm", .attributes = {{"epsilon", 24.0}, {"gamma_offset", 1.0}}}, {&x, &gamma}, {&y});
  expect_close(y, {2 / 7.0, 3}, 1e-14, 0);
}

TEST(ReferenceRmsNorm, OverSeveralDims) {
  const Shape shape = {{"seq", 2}, {"kv_heads", 2}, {"head_dim", 2}}, heads = {{"kv_heads", 2}, {"head_dim", 2}};
  Tensor x(shape, DType::f64, {1, 1, 1, 7, 2, 4, 4, 8}), gamma(heads, DType::f64, {1, 2, 3, 4}), y(shape, DType::f64);
  run_reference({.kind = "rms_norm", .attributes = {{"epsilon", 12.0}}}, {&x, &gamma}, {&y});
  const double a = 1 / std::sqrt(13.0 + 12), b = 1 / std::sqrt(25.0 + 12);
  expect_close(y, {a, 2 * a, 3 * a, 28 * a, 2 * b, 8 * b, 12 * b, 32 * b}, 1e-14, 0);
}

void check(const Shape& x, const Shape& gamma, const Attributes& attributes) {
  check_gradient(
      {.forward = {.kind = "rms_norm", .attributes = attributes},
       .ins = {random_tensor(x, DType::f64, 1), random_tensor(gamma, DType::f64, 2)},
       .outs = {{x, DType::f64}},
       .with_respect_to = {0, 1},
       .gradients = [&](auto& ins, auto&, auto& dy) {
         std::vector<Tensor> d = {Tensor(x, DType::f64), Tensor(gamma, DType::f64)};
         run_reference({.kind = "rms_norm_grad", .attributes = attributes}, {&ins[0], &ins[1], &dy[0]}, {&d[0], &d[1]});
         return d;
       }});
}

TEST(ReferenceRmsNorm, Gradient) {
  const Shape heads = {{"batch", 2}, {"seq", 3}, {"kv_heads", 2}, {"group", 2}, {"head_dim", 3}};
  for (const Attributes& attributes : {Attributes{{"epsilon", 1e-5}}, {{"epsilon", 1e-5}, {"gamma_offset", 1.0}}}) {
    check(kX, kEmbed, attributes);
    check(heads, {{"head_dim", 3}}, attributes);
    check(heads, {{"kv_heads", 2}, {"group", 2}, {"head_dim", 3}}, attributes);
  }
}

}  // namespace
}  // namespace kintsugi::kernels::reference::rms_norm_test
