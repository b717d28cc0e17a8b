#include <cmath>
#include <limits>

#include "kintsugi/kernels/gpu/compare_test.h"

namespace kintsugi::kernels::test {
namespace {

constexpr DeviceTolerance kInDoubles = {1e-12, 1e-12};

// Tokens of samples, some of which have no label; and placements of which one has padding.
struct Sampled {
  explicit Sampled(int64_t columns)
      : shape({{"batch", 3}, {"seq", columns}}),
        lse(random_tensor(shape, DType::f32, 1, 1, 3)),
        target(random_tensor(shape, DType::f32, 2, -1, 1)),
        labels(random_integers(shape, 3, -2, 20)),
        weights(random_tensor(shape, DType::f32, 4, -2, 2)),
        sampled(random_tensor(shape, DType::f32, 5, -4, 0)),
        padded(
            {{"batch", DimIndex({{4, 2}, {-1, 1}}, 6)}, {"seq", DimIndex({{0, columns - 1}, {-1, 1}}, columns - 1)}}) {}

  Shape shape;
  Tensor lse, target, labels, weights, sampled;
  std::vector<NamedIndex> padded;
};

TEST(OnDevice, WeightedScores) {
  for (const int64_t columns : {2, 300})
    for (const bool padding : {false, true}) {
      Sampled s(columns);
      Trial trial = {.kind = "weighted_scores"};
      if (padding) trial.indices = s.padded;
      compare_on_device(trial, {&s.lse, &s.target, &s.labels, &s.weights}, {Tensor({{"batch", 3}}, DType::f64)},
                        kInDoubles);
      trial.kind = "weighted_scores_grad";
      for (const DType dtype : {DType::f64, DType::f32}) {
        Tensor dscore = random_tensor({{"batch", 3}}, dtype, 6);
        const Tensor d = random_tensor(s.shape, DType::f32, 7);
        for (const uint32_t accumulate : {0u, 3u}) {
          trial.accumulate = accumulate;
          compare_on_device(trial, {&s.labels, &s.weights, &dscore}, {d, d});
        }
      }
    }
}

// Rewards of both signs, of which some overflow an exponential, and pairs without a reference.
TEST(OnDevice, PreferenceLoss) {
  for (const int64_t pairs : {1, 5, 3000})
    for (const uint32_t accumulate : {0u, 15u}) {
      const Shape shape({{"batch", pairs}});
      Tensor margin = random_tensor(shape, DType::f64, 1, -9, 9),
             reference = random_tensor(shape, DType::f64, 2, -9, 9);
      if (pairs > 4) {
        margin.set(1, 1e5), margin.set(2, -1e5), reference.set(3, std::numeric_limits<double>::quiet_NaN());
        margin.set(4, reference.get(4));
      }
      const Tensor number = filled({}, DType::f64, 10);
      Trial trial = {.kind = "preference_loss", .attributes = {{"beta", 0.5}}, .accumulate = accumulate};
      compare_on_device(trial, {&margin, &reference}, {number, number, number, number}, kInDoubles);
      if (pairs > 4) {
        trial.indices = {{"batch", DimIndex({{7, pairs - 2}, {-1, 2}}, 5000)}};
        compare_on_device(trial, {&margin, &reference}, {number, number, number, number}, kInDoubles);
      }
      trial.kind = "preference_loss_grad", trial.accumulate &= 1;
      for (const DType dtype : {DType::f64, DType::f32}) {
        Tensor dloss = filled({}, dtype, 1.5);
        compare_on_device(trial, {&margin, &reference, &dloss}, {random_tensor(shape, DType::f64, 3)}, kInDoubles);
      }
    }
}

// Without a bound and with one that some ratios exceed.
TEST(OnDevice, PolicyLoss) {
  for (const int64_t columns : {2, 1500})
    for (const double clip : {0.0, 0.2})
      for (const bool padding : {false, true})
        for (const uint32_t accumulate : {0u, 7u}) {
          Sampled s(columns);
          Trial trial = {.kind = "policy_loss", .accumulate = accumulate};
          if (clip > 0) trial.attributes.set("clip", clip);
          if (padding) trial.indices = s.padded;
          const Tensor number = filled({}, DType::f64, 10), d = random_tensor(s.shape, DType::f32, 7);
          compare_on_device(trial, {&s.lse, &s.target, &s.labels, &s.weights, &s.sampled}, {number, number, number},
                            kInDoubles);
          trial.kind = "policy_loss_grad", trial.accumulate &= 3;
          Tensor dloss = filled({}, DType::f64, 1.5);
          compare_on_device(trial, {&s.lse, &s.target, &s.labels, &s.weights, &s.sampled, &dloss}, {d, d});
        }
}

// Few and many elements a group; volumes; one sample without a norm.
TEST(OnDevice, FieldErrors) {
  for (const DType dtype : kDeviceTypes)
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{2, 3}, {90, 100}})
      for (const bool padding : {false, true}) {
        const Shape shape({{"batch", 3}, {"depth", 2}, {"height", height}, {"width", width}, {"target", 3}});
        Tensor y = random_tensor(shape, dtype, 1), targets = random_tensor(shape, DType::f32, 2),
               derrors = random_tensor({{"batch", 3}}, DType::f64, 3);
        for (int64_t i = 1; i < targets.elements(); i += 5) targets.set(i, std::numeric_limits<double>::quiet_NaN());
        Trial trial = {.kind = "field_errors"};
        if (padding)
          trial.indices = {{"batch", DimIndex({{4, 2}, {-1, 1}}, 6)},
                           {"height", DimIndex({{0, height - 1}, {-1, 1}}, height - 1)}};
        for (const char* group : {"batch", "target"}) {
          const Tensor sums = filled({{group, 3}}, DType::f64, 0);
          trial.kind = "field_errors";
          compare_on_device(trial, {&y, &targets}, {sums, sums}, kInDoubles);
        }
        trial.kind = "field_errors_grad";
        compare_on_device(trial, {&y, &targets, &derrors}, {Tensor(shape, dtype)});
      }
}

TEST(OnDevice, RelativeError) {
  for (const int64_t samples : {1, 5, 3000}) {
    const Shape shape({{"batch", samples}});
    Tensor errors = random_tensor(shape, DType::f64, 1, 0.5, 9), norms = random_tensor(shape, DType::f64, 2, 0.5, 9),
           dloss = filled({}, DType::f64, 2.5);
    if (samples > 4) errors.set(1, 0), norms.set(2, 0);
    const Tensor number = filled({}, DType::f64, 10);
    for (const uint32_t accumulate : {0u, 3u}) {
      compare_on_device({.kind = "relative_error", .accumulate = accumulate}, {&errors, &norms}, {number, number},
                        kInDoubles);
      compare_on_device({.kind = "relative_error_grad"}, {&errors, &norms, &dloss}, {Tensor(shape, DType::f64)},
                        kInDoubles);
    }
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test
