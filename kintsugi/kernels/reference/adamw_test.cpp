#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::adamw_test {
namespace {

using namespace test;

const Attributes kAttributes = {{"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}};

struct State {
  Tensor w = random_tensor({{"flat", 9}}, DType::f64, 1), g = random_tensor({{"flat", 9}}, DType::f64, 2);
  Tensor m = random_tensor({{"flat", 9}}, DType::f64, 3), v = random_tensor({{"flat", 9}}, DType::f64, 4, 0, 1);
  Tensor factor{{}, DType::f64, {0.25}}, finite{{}, DType::f64, {1}}, updates{{}, DType::f64, {4}};

  // In place, with and without the low-precision copy.
  void update(Tensor* weight = nullptr) {
    std::vector<Tensor*> outs = {&w, &m, &v};
    if (weight) outs.push_back(weight);
    run_reference({.kind = "adamw", .attributes = kAttributes, .numbers = {.learning_rate = 0.01}},
                  {&w, &g, &m, &v, &factor, &finite, &updates}, outs);
  }
};

TEST(ReferenceAdamW, PlainFormula) {
  State state, before;
  Tensor weight({{"flat", 9}}, DType::bf16);
  state.update(&weight);
  for (int64_t i = 0; i < 9; ++i) {
    const double g = before.g.get(i) * 0.25;
    const double m = 0.9 * before.m.get(i) + 0.1 * g, v = 0.95 * before.v.get(i) + 0.05 * g * g;
    const double m_hat = m / (1 - std::pow(0.9, 5)), v_hat = v / (1 - std::pow(0.95, 5));
    const double w = before.w.get(i) - 0.01 * (m_hat / (std::sqrt(v_hat) + 1e-8) + 0.1 * before.w.get(i));
    EXPECT_NEAR(state.m.get(i), m, 1e-15);
    EXPECT_NEAR(state.v.get(i), v, 1e-15);
    EXPECT_NEAR(state.w.get(i), w, 1e-15);
    EXPECT_EQ(weight.get(i), state.w.as(DType::bf16).get(i));
  }
}

TEST(ReferenceAdamW, FirstStepIsTheSignOfTheGradient) {
  State state;
  state.m.fill(0);
  state.v.fill(0);
  state.updates.fill(0);
  const Tensor before = state.w;
  state.update();
  for (int64_t i = 0; i < 9; ++i) {
    const double sign = state.g.get(i) > 0 ? 1 : -1;
    EXPECT_NEAR(state.w.get(i), before.get(i) * (1 - 0.001) - 0.01 * sign, 1e-7);
  }
}

TEST(ReferenceAdamW, SkipsWhatIsNotFinite) {
  State state, before;
  state.finite.fill(0);
  state.g.fill(std::nan(""));
  state.factor.fill(std::nan(""));
  Tensor weight({{"flat", 9}}, DType::f16);
  state.update(&weight);
  expect_close(state.w, before.w, 0, 0);
  expect_close(state.m, before.m, 0, 0);
  expect_close(state.v, before.v, 0, 0);
  expect_close(weight, before.w.as(DType::f16), 0, 0);
}

}  // namespace
}  // namespace kintsugi::kernels::reference::adamw_test
