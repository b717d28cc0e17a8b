#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::contract_test {
namespace {

using namespace test;

TEST(ReferenceContract, MatrixProductByHand) {
  Tensor x({{"batch", 2}, {"embed", 2}}, DType::f32, {1, 2, 3, 4});
  Tensor w({{"ffn", 3}, {"embed", 2}}, DType::f32, {1, 0, 0, 1, 1, 1});
  Tensor bias({{"ffn", 3}}, DType::f32, {10, 20, 30}), y({{"batch", 2}, {"ffn", 3}}, DType::f32);
  run_reference({.kind = "contract"}, {&x, &w}, {&y});
  expect_close(y, {1, 2, 3, 3, 4, 7}, 0, 0);
  run_reference({.kind = "contract", .accumulate = 1}, {&x, &w, &bias}, {&y});
  expect_close(y, {12, 24, 36, 16, 28, 44}, 0, 0);
}

// Batch dims, own dims and several summed dims, in orders that differ between operands.
TEST(ReferenceContract, AnyArrangementOfDims) {
  const Shape a_shape = {{"expert", 2}, {"seq", 3}, {"kv_heads", 4}, {"head_dim", 5}};
  const Shape b_shape = {{"head_dim", 5}, {"embed", 6}, {"kv_heads", 4}, {"expert", 2}};
  Tensor a = random_tensor(a_shape, DType::f64, 1), b = random_tensor(b_shape, DType::f64, 2);
  Tensor y({{"embed", 6}, {"expert", 2}, {"seq", 3}}, DType::f64), want(y.type());
  run_reference({.kind = "contract"}, {&a, &b}, {&y});
  for (int64_t e = 0; e < 6; ++e) {
    for (int64_t x = 0; x < 2; ++x) {
      for (int64_t s = 0; s < 3; ++s) {
        double sum = 0;
        for (int64_t k = 0; k < 4; ++k) {
          for (int64_t h = 0; h < 5; ++h) {
            sum += a.get(((x * 3 + s) * 4 + k) * 5 + h) * b.get(((h * 6 + e) * 4 + k) * 2 + x);
          }
        }
        want.set((e * 2 + x) * 3 + s, sum);
      }
    }
  }
  expect_close(y, want, 1e-14, 1e-14);
}

TEST(ReferenceContract, GradientIsAContraction) {
  const Shape x = {{"batch", 2}, {"seq", 3}, {"embed", 4}}, w = {{"kv_heads", 2}, {"head_dim", 3}, {"embed", 4}};
  check_gradient({.forward = {.kind = "contract"},
                  .ins = {random_tensor(x, DType::f64, 1), random_tensor(w, DType::f64, 2)},
                  .outs = {{{{"batch", 2}, {"seq", 3}, {"kv_heads", 2}, {"head_dim", 3}}, DType::f64}},
                  .with_respect_to = {0, 1},
                  .gradients = [&](auto& ins, auto&, auto& dy) {
                    std::vector<Tensor> d = {Tensor(x, DType::f64), Tensor(w, DType::f64)};
                    run_reference({.kind = "contract"}, {&dy[0], &ins[1]}, {&d[0]});
                    run_reference({.kind = "contract"}, {&ins[0], &dy[0]}, {&d[1]});
                    return d;
                  }});
}

TEST(ReferenceContract, NarrowOperandsAreRoundedOnce) {
  Tensor a({{"batch", 1}, {"embed", 3}}, DType::bf16, {256, 1, -256}), b({{"embed", 3}}, DType::bf16, {1, 0.5, 1});
  Tensor narrow({{"batch", 1}}, DType::bf16), wide({{"batch", 1}}, DType::f32);
  run_reference({.kind = "contract"}, {&a, &b}, {&narrow});
  run_reference({.kind = "contract"}, {&a, &b}, {&wide});
  EXPECT_EQ(narrow.get(0), 0.5);
  EXPECT_EQ(wide.get(0), 0.5);
}

}  // namespace
}  // namespace kintsugi::kernels::reference::contract_test
