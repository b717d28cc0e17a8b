#include "kintsugi/kernels/gpu/compare_test.h"

namespace kintsugi::kernels::test {
namespace {

TEST(OnDevice, CrossEntropy) {
  const Shape shape({{"batch", 3}, {"seq", 50}});
  Tensor lse = random_tensor(shape, DType::f32, 1, 1, 9), target = random_tensor(shape, DType::f32, 2, -3, 3),
         labels = random_integers(shape, 3, -1, 20), dloss = filled({}, DType::f64, 2.5);
  const Tensor number = filled({}, DType::f64, 10), d = random_tensor(shape, DType::f32, 4);
  for (const uint32_t accumulate : {0u, 3u}) {
    compare_on_device({.kind = "cross_entropy", .accumulate = accumulate}, {&lse, &target, &labels}, {number, number},
                      {1e-12, 1e-12});
    compare_on_device({.kind = "cross_entropy_grad", .accumulate = accumulate}, {&labels, &dloss}, {d, d});
  }
  const std::vector<NamedIndex> padded = {{"seq", DimIndex({{0, 45}, {-1, 5}}, 45)}};
  compare_on_device({.kind = "cross_entropy", .indices = padded}, {&lse, &target, &labels}, {number, number},
                    {1e-12, 1e-12});
  compare_on_device({.kind = "cross_entropy_grad", .indices = padded}, {&labels, &dloss}, {d, d});
}

TEST(OnDevice, CrossEntropyOfManyTokens) {
  const Shape shape({{"batch", 2}, {"seq", 20'000}});
  Tensor lse = random_tensor(shape, DType::f32, 1, 1, 9), target = random_tensor(shape, DType::f32, 2, -3, 3),
         labels = random_integers(shape, 3, -1, 20);
  const Tensor number = filled({}, DType::f64, 10), single = filled({}, DType::f32, 10);
  compare_on_device({.kind = "cross_entropy"}, {&lse, &target, &labels}, {number, number}, {1e-12, 1e-12});
  compare_on_device({.kind = "cross_entropy"}, {&lse, &target, &labels}, {single, single}, {1e-6, 1e-6});
}

TEST(OnDevice, SampleScores) {
  for (const int64_t columns : {1, 50, 700}) {
    const Shape shape({{"batch", 3}, {"seq", columns}});
    Tensor lse = random_tensor(shape, DType::f32, 1, 1, 9), target = random_tensor(shape, DType::f32, 2, -3, 3),
           top = random_tensor(shape, DType::f32, 4, -3, 3), labels = random_integers(shape, 3, -2, 20);
    top.set(0, target.get(0)), labels.set(0, 4);
    const std::vector<Tensor> outs(3, Tensor({{"batch", 3}}, DType::f64));
    compare_on_device({.kind = "sample_scores"}, {&lse, &target, &labels, &top}, outs, {1e-12, 1e-12});
    if (columns < 5) continue;
    const std::vector<NamedIndex> padded = {{"seq", DimIndex({{0, columns - 5}, {-1, 5}}, columns - 5)}};
    compare_on_device({.kind = "sample_scores", .indices = padded}, {&lse, &target, &labels, &top}, outs,
                      {1e-12, 1e-12});
  }
}

TEST(OnDevice, ClassLoss) {
  for (const DType dtype : kDeviceTypes)
    for (const auto& [samples, classes] : {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {70, 45}, {3, 1000}}) {
      const Shape batch({{"batch", samples}}), shape({{"batch", samples}, {"class", classes}});
      Tensor logits = random_tensor(shape, dtype, 1, -5, 5), labels = random_integers(batch, 2, -1, classes + 1),
             weights = random_tensor(batch, DType::f32, 3, 0, 2), dloss = filled({}, DType::f64, 2.5);
      labels.set(0, 0);
      const Tensor number = filled({}, DType::f64, 10), d = random_tensor(shape, dtype, 4);
      std::vector<std::vector<NamedIndex>> layouts = {{}};
      if (samples == 70) layouts.push_back({{"batch", DimIndex({{3, 60}, {-1, 10}}, 100)}});
      for (const auto& indices : layouts)
        for (const uint32_t accumulate : {0u, 3u}) {
          compare_on_device({.kind = "class_loss", .indices = indices, .accumulate = accumulate},
                            {&logits, &labels, &weights}, {number, number}, {2e-6, 2e-6});
          compare_on_device({.kind = "class_loss_grad", .indices = indices, .accumulate = accumulate & 1},
                            {&logits, &labels, &weights, &dloss}, {d});
        }
    }
}

// An impossible class has probability zero.
TEST(OnDevice, ClassLossWithInfiniteLogits) {
  const double low = -std::numeric_limits<double>::infinity();
  Tensor logits({{"batch", 2}, {"class", 3}}, DType::f32, {low, 1, 2, 90, low, low}),
      labels({{"batch", 2}}, DType::i32, {1, 0}), weights = filled({{"batch", 2}}, DType::f32, 1),
                                                  dloss = filled({}, DType::f64, 1);
  const Tensor number = filled({}, DType::f64, 0);
  compare_on_device({.kind = "class_loss"}, {&logits, &labels, &weights}, {number, number}, {2e-6, 2e-6});
  compare_on_device({.kind = "class_loss_grad"}, {&logits, &labels, &weights, &dloss}, {logits});
}

TEST(OnDevice, SquaredError) {
  for (const DType dtype : kDeviceTypes)
    for (const auto& [samples, columns] : {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {900, 7}}) {
      const Shape shape({{"batch", samples}, {"target", columns}});
      Tensor y = random_tensor(shape, dtype, 1), targets = random_tensor(shape, DType::f32, 2),
             dloss = filled({}, DType::f64, 2.5);
      for (int64_t i = 1; i < targets.elements(); i += 5) targets.set(i, std::numeric_limits<double>::quiet_NaN());
      const Tensor number = filled({}, DType::f64, 10), d = random_tensor(shape, dtype, 4);
      std::vector<std::vector<NamedIndex>> layouts = {{}};
      if (samples == 5) layouts.push_back({{"batch", DimIndex({{2, 4}, {-1, 1}}, 9)}, {"target", DimIndex(3)}});
      for (const auto& indices : layouts)
        for (const uint32_t accumulate : {0u, 3u}) {
          compare_on_device({.kind = "squared_error", .indices = indices, .accumulate = accumulate}, {&y, &targets},
                            {number, number}, {1e-12, 1e-12});
          compare_on_device({.kind = "squared_error_grad", .indices = indices, .accumulate = accumulate & 1},
                            {&y, &targets, &dloss}, {d});
        }
    }
}

}  // namespace
}  // namespace kintsugi::kernels::test
