#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::activation_test {
namespace {

using namespace test;

const Shape kX = {{"batch", 3}, {"ffn", 11}};

void check(const std::string& kind, const Attributes& attributes) {
  check_gradient({.forward = {.kind = kind, .attributes = attributes},
                  .ins = {random_tensor(kX, DType::f64, 1, -4, 4)},
                  .outs = {{kX, DType::f64}},
                  .with_respect_to = {0},
                  .gradients = [&](auto& ins, auto&, auto& dy) {
                    std::vector<Tensor> d = {dy[0]};  // in place
                    run_reference({.kind = kind + "_grad", .attributes = attributes}, {&ins[0], &d[0]}, {&d[0]});
                    return d;
                  }});
}

TEST(ReferenceActivation, Gradients) {
  check("gelu", {{"form", "erf"}});
  check("gelu", {{"form", "tanh"}});
  check("silu", {});
  check("relu", {});
  check("relu2", {});
  check("tanh", {});
}

TEST(ReferenceActivation, Values) {
  const Shape three = {{"ffn", 3}};
  const auto values = [&](const std::string& kind, const Attributes& attributes) {
    Tensor x(three, DType::f64, {-1, 0, 2});
    run_reference({.kind = kind, .attributes = attributes}, {&x}, {&x});  // in place
    return x;
  };
  // x times the normal CDF at x: 0.15865525393145707 and 0.9772498680518208.
  expect_close(values("gelu", {{"form", "erf"}}), {-0.15865525393145707, 0, 1.9544997361036416}, 1e-14, 0);
  expect_close(values("gelu", {{"form", "tanh"}}), {-0.158808009, 0, 1.954597694}, 1e-8, 0);
  expect_close(values("silu", {}), {-1 / (1 + std::exp(1.0)), 0, 2 / (1 + std::exp(-2.0))}, 1e-14, 0);
  expect_close(values("relu", {}), {0, 0, 2}, 0, 0);
  expect_close(values("relu2", {}), {0, 0, 4}, 0, 0);
  expect_close(values("tanh", {}), {-std::tanh(1.0), 0, std::tanh(2.0)}, 1e-15, 0);
}

TEST(ReferenceActivation, FarAwayValuesStayFinite) {
  for (const std::string kind : {"gelu", "silu", "relu"}) {
    Tensor x({{"ffn", 2}}, DType::f64, {-1000, 1000}), one = filled({{"ffn", 2}}, DType::f64, 1);
    Tensor y = x, dx = x;
    run_reference({.kind = kind, .attributes = {{"form", "tanh"}}}, {&x}, {&y});
    run_reference({.kind = kind + "_grad", .attributes = {{"form", "tanh"}}}, {&x, &one}, {&dx});
    expect_close(y, {0, 1000}, 0, 0, kind);
    expect_close(dx, {0, 1}, 0, 0, kind);
  }
}

TEST(ReferenceActivation, UnknownFormIsAnError) {
  Tensor x = random_tensor(kX, DType::f64, 1);
  try {
    run_reference({.kind = "gelu", .attributes = {{"form", "sigmoid"}}}, {&x}, {&x});
    FAIL();
  } catch (const base::InternalError& error) {
    EXPECT_STREQ(error.what(), "[gelu] internal error: no form \"sigmoid\"; there are tanh, erf");
  }
  Tensor up = x, y = x;
  try {
    run_reference({.kind = "gated", .attributes = {{"activation", "swish"}}}, {&x, &up}, {&y});
    FAIL();
  } catch (const base::InternalError& error) {
    EXPECT_STREQ(error.what(),
                 "[kernels] internal error: no activation \"swish\"; there are gelu, gelu_tanh, silu, relu, "
                 "relu2, tanh");
  }
}

}  // namespace
}  // namespace kintsugi::kernels::reference::activation_test
