#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::gated_test {
namespace {

using namespace test;

TEST(ReferenceGated, Gradient) {
  const Shape shape = {{"batch", 3}, {"ffn", 5}};
  for (const std::string name : {"silu", "gelu", "gelu_tanh", "relu", "relu2"}) {
    const Attributes attributes = {{"activation", name}};
    check_gradient(
        {.forward = {.kind = "gated", .attributes = attributes},
         .ins = {random_tensor(shape, DType::f64, 1, -3, 3), random_tensor(shape, DType::f64, 2)},
         .outs = {{shape, DType::f64}},
         .with_respect_to = {0, 1},
         .gradients = [&](auto& ins, auto&, auto& dy) {
           std::vector<Tensor> d = {Tensor(shape, DType::f64), Tensor(shape, DType::f64)};
           run_reference({.kind = "gated_grad", .attributes = attributes}, {&ins[0], &ins[1], &dy[0]}, {&d[0], &d[1]});
           return d;
         }});
  }
}

TEST(ReferenceGated, ActivatesTheGateOnly) {
  Tensor gate({{"ffn", 2}}, DType::f64, {-3, 3}), up({{"ffn", 2}}, DType::f64, {5, -5}), y(up.type());
  run_reference({.kind = "gated", .attributes = {{"activation", "relu"}}}, {&gate, &up}, {&y});
  expect_close(y, {0, -15}, 0, 0);
}

}  // namespace
}  // namespace kintsugi::kernels::reference::gated_test
