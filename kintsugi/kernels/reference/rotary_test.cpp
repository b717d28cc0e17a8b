#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::rotary_test {
namespace {

using namespace test;

const Shape kX = {{"batch", 2}, {"seq", 3}, {"kv_heads", 2}, {"head_dim", 6}};

Attributes attributes_of(int64_t inverse, int64_t interleaved) {
  return {{"theta", 100.0}, {"inverse", inverse}, {"interleaved", interleaved}};
}

TEST(ReferenceRotary, BothFormsByHand) {
  const Shape shape = {{"batch", 1}, {"seq", 1}, {"head_dim", 4}};
  const double c0 = std::cos(3.0), s0 = std::sin(3.0);  // theta^0
  const double c1 = std::cos(0.3), s1 = std::sin(0.3);  // 100^(-2/4) = 0.1
  const std::vector<NamedIndex> third = {{"seq", DimIndex({{3, 1}}, 8)}};
  Tensor x(shape, DType::f64, {1, 2, 3, 4}), y(shape, DType::f64);
  run_reference({.kind = "rotary", .attributes = attributes_of(0, 0), .indices = third}, {&x}, {&y});
  expect_close(y, {c0 - 3 * s0, 2 * c1 - 4 * s1, s0 + 3 * c0, 2 * s1 + 4 * c1}, 1e-14, 1e-14);
  run_reference({.kind = "rotary", .attributes = attributes_of(0, 1), .indices = third}, {&x}, {&y});
  expect_close(y, {c0 - 2 * s0, s0 + 2 * c0, 3 * c1 - 4 * s1, 3 * s1 + 4 * c1}, 1e-14, 1e-14);
}

TEST(ReferenceRotary, GradientIsTheInverse) {
  for (int64_t interleaved : {0, 1}) {
    check_gradient({.forward = {.kind = "rotary", .attributes = attributes_of(0, interleaved)},
                    .ins = {random_tensor(kX, DType::f64, 1)},
                    .outs = {{kX, DType::f64}},
                    .with_respect_to = {0},
                    .gradients = [&](auto&, auto&, auto& dy) {
                      std::vector<Tensor> d = {dy[0]};  // in place
                      run_reference({.kind = "rotary", .attributes = attributes_of(1, interleaved)}, {&d[0]}, {&d[0]});
                      return d;
                    }});
  }
}

// Two pairs of six dims, at a tenth of the frequencies, scaled by 1.5.
TEST(ReferenceRotary, SomeDimsByHand) {
  const Shape shape = {{"batch", 1}, {"seq", 1}, {"head_dim", 6}};
  const double c0 = 1.5 * std::cos(0.3), s0 = 1.5 * std::sin(0.3), c1 = 1.5 * std::cos(0.03), s1 = 1.5 * std::sin(0.03);
  Attributes attributes = attributes_of(0, 0);
  attributes.set("dims", int64_t{4});
  attributes.set("scaling", "linear");
  attributes.set("factor", 10.0);
  attributes.set("magnitude", 1.5);
  const std::vector<NamedIndex> third = {{"seq", DimIndex({{3, 1}}, 8)}};
  Tensor x(shape, DType::f64, {1, 2, 3, 4, 5, 6}), y(shape, DType::f64);
  run_reference({.kind = "rotary", .attributes = attributes, .indices = third}, {&x}, {&y});
  expect_close(y, {c0 - 3 * s0, 2 * c1 - 4 * s1, s0 + 3 * c0, 2 * s1 + 4 * c1, 5, 6}, 1e-14, 1e-14);
  attributes.set("interleaved", int64_t{1});
  run_reference({.kind = "rotary", .attributes = attributes, .indices = third}, {&x}, {&y});
  expect_close(y, {c0 - 2 * s0, s0 + 2 * c0, 3 * c1 - 4 * s1, 3 * s1 + 4 * c1, 5, 6}, 1e-14, 1e-14);
}

TEST(ReferenceRotary, GradientOfSomeDims) {
  for (int64_t interleaved : {0, 1}) {
    Attributes attributes = attributes_of(0, interleaved);
    attributes.set("dims", int64_t{4});
    attributes.set("magnitude", 1.5);
    check_gradient({.forward = {.kind = "rotary", .attributes = attributes},
                    .ins = {random_tensor(kX, DType::f64, 1)},
                    .outs = {{kX, DType::f64}},
                    .with_respect_to = {0},
                    .gradients = [&](auto&, auto&, auto& dy) {
                      Attributes back = attributes;
                      back.set("inverse", int64_t{1});
                      std::vector<Tensor> d = {dy[0]};
                      run_reference({.kind = "rotary", .attributes = back}, {&d[0]}, {&d[0]});
                      return d;
                    }});
  }
}

TEST(ReferenceRotary, ProductsDependOnDistancesOnly) {
  Tensor q = random_tensor({{"batch", 1}, {"seq", 1}, {"head_dim", 6}}, DType::f64, 1);
  Tensor k = random_tensor(q.type().shape, DType::f64, 2);
  const auto product = [&](int64_t query, int64_t key) {
    Tensor a(q.type()), b(q.type());
    Trial trial = {.kind = "rotary", .attributes = attributes_of(0, 0)};
    trial.indices = {{"seq", DimIndex({{query, 1}}, 99)}};
    run_reference(trial, {&q}, {&a});
    trial.indices = {{"seq", DimIndex({{key, 1}}, 99)}};
    run_reference(trial, {&k}, {&b});
    double sum = 0;
    for (int64_t i = 0; i < 6; ++i) sum += a.get(i) * b.get(i);
    return sum;
  };
  EXPECT_NEAR(product(7, 2), product(65, 60), 1e-12);
}

}  // namespace
}  // namespace kintsugi::kernels::reference::rotary_test
