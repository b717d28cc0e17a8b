#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::dropout_test {
namespace {

using namespace test;

Trial trial_of(double p, int64_t step = 0, int64_t batch_offset = 0) {
  return {.kind = "dropout",
          .attributes = {{"p", p}, {"key", "layer0.mlp"}},
          .numbers = {.seed = 9, .step = step, .batch_offset = batch_offset}};
}

TEST(ReferenceDropout, KeepsItsShareAndScalesIt) {
  for (double p : {0.0, 0.1, 0.5, 0.9}) {
    Tensor x = filled({{"batch", 100}, {"embed", 1000}}, DType::f64, 1);
    run_reference(trial_of(p), {&x}, {&x});  // in place
    int64_t kept = 0;
    for (int64_t i = 0; i < x.elements(); ++i) {
      if (x.get(i) == 0) continue;
      EXPECT_DOUBLE_EQ(x.get(i), 1 / (1 - p));
      ++kept;
    }
    const double deviation = std::sqrt(p * (1 - p) / 100000);
    EXPECT_NEAR(static_cast<double>(kept) / 100000, 1 - p, 4 * deviation) << p;
  }
}

TEST(ReferenceDropout, MaskIsThatOfTheContract) {
  Tensor x = filled({{"seq", 3}, {"batch", 2}, {"embed", 5}}, DType::f32, 1), y(x.type());
  Trial trial = trial_of(0.5, 3, 4);
  trial.indices = {{"batch", DimIndex({{2, 2}}, 8)}, {"embed", DimIndex({{5, 4}, {-1, 1}}, 9)}};
  run_reference(trial, {&x}, {&y});
  for (uint64_t s = 0; s < 3; ++s) {
    for (uint64_t b = 0; b < 2; ++b) {
      for (uint64_t e = 0; e < 5; ++e) {
        const uint64_t index = (s * 8 + (2 + b + 4)) * 9 + (5 + e);
        const bool kept = e < 4 && random_word(random_key(9, "layer0.mlp"), 3, index) >= 1u << 31;
        EXPECT_EQ(y.get(static_cast<int64_t>((s * 2 + b) * 5 + e)), kept ? 2 : 0);
      }
    }
  }
}

TEST(ReferenceDropout, DoesNotDependOnTheSplitOfTheBatch) {
  const Shape whole = {{"batch", 6}, {"seq", 5}, {"embed", 7}}, part = {{"batch", 2}, {"seq", 5}, {"embed", 7}};
  Tensor x = filled(whole, DType::f32, 1), y(whole, DType::f32), other(whole, DType::f32);
  run_reference(trial_of(0.3, 7), {&x}, {&y});
  for (int64_t begin : {0, 2, 4}) {
    Tensor some = filled(part, DType::f32, 1);
    run_reference(trial_of(0.3, 7, begin), {&some}, {&some});
    for (int64_t i = 0; i < some.elements(); ++i) EXPECT_EQ(some.get(i), y.get(begin * 35 + i));
  }
  run_reference(trial_of(0.3, 8), {&x}, {&other});
  EXPECT_NE(y.values(), other.values());
}

TEST(ReferenceDropout, IsItsOwnGradient) {
  const Shape shape = {{"batch", 3}, {"embed", 7}};
  check_gradient({.forward = trial_of(0.4),
                  .ins = {random_tensor(shape, DType::f64, 1)},
                  .outs = {{shape, DType::f64}},
                  .with_respect_to = {0},
                  .gradients = [&](auto&, auto&, auto& dy) {
                    std::vector<Tensor> d = {Tensor(shape, DType::f64)};
                    run_reference(trial_of(0.4), {&dy[0]}, {&d[0]});
                    return d;
                  }});
}

}  // namespace
}  // namespace kintsugi::kernels::reference::dropout_test
