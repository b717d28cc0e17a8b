#include "kintsugi/kernels/gpu/compare_test.h"

namespace kintsugi::kernels::test {
namespace {

Trial trial_of(double p, int64_t step, int64_t batch_offset) {
  return {.kind = "dropout",
          .attributes = {{"p", p}, {"key", "layer0.mlp"}},
          .numbers = {.seed = 9, .step = step, .batch_offset = batch_offset}};
}

TEST(OnDevice, DropoutFollowsTheIndexOfTheWhole) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t embed : {37, 40}) {
      const Shape shape({{"batch", 2}, {"seq", 11}, {"embed", embed}});
      const std::vector<std::vector<NamedIndex>> placements = {
          {},
          {{"seq", DimIndex({{5, 11}}, 40)}},
          {{"batch", DimIndex({{2, 2}}, 8)}, {"seq", DimIndex({{0, 4}, {30, 3}, {-1, 4}}, 33)}},
          {{"embed", DimIndex({{3, embed}}, 41 + embed)}},  // runs that begin anywhere in a block of words
          {{"embed", DimIndex({{0, 10}, {90, 20}, {-1, embed - 30}}, 110)}},
          {{"batch", DimIndex({{5, 1}, {-1, 1}}, 8)}, {"embed", DimIndex({{1, embed}}, embed + 1)}},
          {{"batch", DimIndex({{1ll << 33, 2}}, 1ll << 34)}},
      };
      Tensor x = random_tensor(shape, dtype, 1);
      for (const auto& indices : placements)
        for (const double p : {0.0, 0.3, 0.9}) {
          Trial trial = trial_of(p, 7, 3);
          trial.indices = indices;
          compare_on_device(trial, {&x}, {Tensor(shape, dtype)});
          trial.accumulate = 1;
          compare_on_device(trial, {&x}, {random_tensor(shape, dtype, 2)});
        }
    }
}

// The whole in some order of dims, in place; the device's scalar gives the step.
TEST(OnDevice, DropoutDoesNotDependOnTheSplitOfTheBatch) {
  const Shape whole = {{"seq", 3}, {"batch", 6}, {"embed", 8}}, part = {{"seq", 3}, {"batch", 2}, {"embed", 8}};
  for (const int64_t step : {0ll, 7ll, 1ll << 33}) {
    Tensor x = filled(whole, DType::bf16, 1), y(whole, DType::bf16);
    compare_on_device(trial_of(0.5, step, 0), {&x}, {y}, {0, 0});
    run_on_device(trial_of(0.5, step, 0), {&x}, {&y});
    for (const int64_t begin : {0, 2, 4}) {
      Tensor some = filled(part, DType::bf16, 1);
      Trial trial = trial_of(0.5, step, begin);
      trial.indices = {{"batch", DimIndex({{0, 2}}, 6)}};
      run_on_device(trial, {&some}, {&some});
      for (int64_t s = 0; s < 3; ++s)
        for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(some.get(s * 16 + i), y.get(s * 48 + begin * 8 + i));
    }
  }
}

TEST(OnDevice, DropoutSelectsAndDoesNotMultiply) {
  Tensor x = filled({{"embed", 64}}, DType::f32, INFINITY);
  compare_on_device(trial_of(0.5, 1, 0), {&x}, {Tensor(x.type())});
}

}  // namespace
}  // namespace kintsugi::kernels::test
