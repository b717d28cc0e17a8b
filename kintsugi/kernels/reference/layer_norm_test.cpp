#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::layer_norm_test {
namespace {

using namespace test;

const Shape kX = {{"batch", 2}, {"seq", 3}, {"embed", 7}};
const Shape kEmbed = {{"embed", 7}};

TEST(ReferenceLayerNorm, SmallRowByHand) {
  Tensor x({{"embed", 4}}, DType::f64, {1, 2, 3, 6}), gamma({{"embed", 4}}, DType::f64, {1, 1, 2, 1});
  Tensor beta({{"embed", 4}}, DType::f64, {0, 0, 0, 10}), y({{"embed", 4}}, DType::f64);
  run_reference({.kind = "layer_norm", .attributes = {{"epsilon", 0.5}}}, {&x, &gamma, &beta}, {&y});
  expect_close(y, {-1, -0.5, 0, 11.5}, 1e-14, 1e-14);  // mean 3, variance 3.5, deviation 2
}

TEST(ReferenceLayerNorm, Gradient) {
  for (bool with_beta : {true, false}) {
    GradientCheck check{.forward = {.kind = "layer_norm", .attributes = {{"epsilon", 1e-5}}},
                        .ins = {random_tensor(kX, DType::f64, 1), random_tensor(kEmbed, DType::f64, 2)},
                        .outs = {{kX, DType::f64}},
                        .with_respect_to = {0, 1}};
    if (with_beta) {
      check.ins.push_back(random_tensor(kEmbed, DType::f64, 3));
      check.with_respect_to.push_back(2);
    }
    check.gradients = [&](auto& ins, auto&, auto& dy) {
      std::vector<Tensor> d = {Tensor(kX, DType::f64), Tensor(kEmbed, DType::f64)};
      if (with_beta) d.emplace_back(kEmbed, DType::f64);
      std::vector<Tensor*> outs;
      for (Tensor& t : d) outs.push_back(&t);
      run_reference({.kind = "layer_norm_grad", .attributes = {{"epsilon", 1e-5}}}, {&ins[0], &ins[1], &dy[0]}, outs);
      return d;
    };
    check_gradient(check);
  }
}

TEST(ReferenceLayerNorm, GradientsOfWeightsAccumulateInFp32BesideBf16) {
  Tensor x = random_tensor(kX, DType::bf16, 1), gamma = random_tensor(kEmbed, DType::bf16, 2);
  Tensor dy = random_tensor(kX, DType::bf16, 3), dx(kX, DType::bf16);
  Tensor dgamma(kEmbed, DType::f32), dbeta(kEmbed, DType::f32);
  const Attributes attributes = {{"epsilon", 1e-5}};
  run_reference({.kind = "layer_norm_grad", .attributes = attributes}, {&x, &gamma, &dy}, {&dx, &dgamma, &dbeta});
  Tensor more = dgamma, as_it_was = dbeta;
  run_reference({.kind = "layer_norm_grad", .attributes = attributes, .accumulate = 2}, {&x, &gamma, &dy},
                {&dx, &more, &dbeta});
  for (int64_t i = 0; i < 7; ++i) EXPECT_NEAR(more.get(i), 2 * dgamma.get(i), 1e-6);
  expect_close(dbeta, as_it_was, 0, 0);
}

TEST(ReferenceLayerNorm, TheGradientIsAlsoSummedAsItIsStored) {
  Tensor x = random_tensor(kX, DType::bf16, 1), gamma = random_tensor(kEmbed, DType::bf16, 2);
  Tensor dy = random_tensor(kX, DType::bf16, 3), dx = random_tensor(kX, DType::bf16, 4);
  Tensor dgamma(kEmbed, DType::f32), sums(kEmbed, DType::f32), alone(kEmbed, DType::f32);
  run_reference({.kind = "layer_norm_grad", .attributes = {{"epsilon", 1e-5}}, .accumulate = 1}, {&x, &gamma, &dy},
                {&dx, &dgamma, nullptr, &sums});
  run_reference({.kind = "sum"}, {&dx}, {&alone});
  expect_close(sums, alone, 0, 0);
}

}  // namespace
}  // namespace kintsugi::kernels::reference::layer_norm_test
