#include <limits>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::attention_test {
namespace {

using namespace test;

struct Sizes {
  int64_t batch = 2, seq = 5, key_seq = 5, kv_heads = 2, group = 3, head_dim = 3;

  Shape q() const {
    return {{"batch", batch}, {"seq", seq}, {"kv_heads", kv_heads}, {"group", group}, {"head_dim", head_dim}};
  }
  Shape k() const { return {{"batch", batch}, {"key_seq", key_seq}, {"kv_heads", kv_heads}, {"head_dim", head_dim}}; }
  Shape lse() const { return {{"batch", batch}, {"seq", seq}, {"kv_heads", kv_heads}, {"group", group}}; }
};

Attributes attributes_of(int64_t causal, double dropout = 0) {
  return {{"causal", causal}, {"scale", 0.6}, {"dropout", dropout}, {"key", "layer0.attention"}};
}

void check(const Sizes& z, Trial trial, std::vector<Tensor> starts = {}) {
  trial.kind = "attention";
  trial.numbers = {.seed = 5, .step = 3, .batch_offset = 4};
  GradientCheck check{.forward = trial,
                      .ins = {random_tensor(z.q(), DType::f64, 1, -2, 2), random_tensor(z.k(), DType::f64, 2, -2, 2),
                              random_tensor(z.k(), DType::f64, 3)},
                      .outs = {{z.q(), DType::f64}, {z.lse(), DType::f64}},
                      .with_respect_to = {0, 1, 2},
                      .num_cotangents = 1};
  check.ins.insert(check.ins.end(), starts.begin(), starts.end());
  check.gradients = [&](auto& ins, auto& outs, auto& dy) {
    std::vector<Tensor> d = {Tensor(z.q(), DType::f64), Tensor(z.k(), DType::f64), Tensor(z.k(), DType::f64)};
    std::vector<Tensor*> operands;
    for (Tensor& x : ins) operands.push_back(&x);
    operands.resize(AttentionGradIn::kO, nullptr);
    for (Tensor* x : {&outs[0], &outs[1], &dy[0]}) operands.push_back(x);
    Trial grad = trial;
    grad.kind = "attention_grad";
    run_reference(grad, operands, {&d[0], &d[1], &d[2]});
    return d;
  };
  check_gradient(check);
}

TEST(ReferenceAttention, Gradient) {
  check({}, {.attributes = attributes_of(1)});
  check({}, {.attributes = attributes_of(0)});
  check({.seq = 3, .key_seq = 7, .kv_heads = 1, .group = 1}, {.attributes = attributes_of(0)});
}

TEST(ReferenceAttention, GradientWithDropout) {
  check({}, {.attributes = attributes_of(1, 0.4)});
  check({}, {.attributes = attributes_of(0, 0.4)});
}

TEST(ReferenceAttention, GradientWithStarts) {
  // One query of each sequence sees nothing at all.
  check({}, {.attributes = attributes_of(1, 0.3)},
        {Tensor({{"batch", 2}, {"seq", 5}}, DType::i32, {0, 0, 2, 2, 5, 0, 1, 1, 4, 3})});
  check({}, {.attributes = attributes_of(0)},
        {Tensor({{"batch", 2}, {"seq", 5}}, DType::i32, {0, 0, 2, 2, 5, 0, 1, 1, 4, 3})});
}

TEST(ReferenceAttention, GradientWithZigzagAndPadding) {
  check({.seq = 5, .key_seq = 6}, {.attributes = attributes_of(1, 0.3),
                                   .indices = {{"seq", DimIndex({{1, 2}, {6, 2}, {-1, 1}}, 9)},
                                               {"key_seq", DimIndex({{0, 3}, {5, 2}, {-1, 1}}, 9)}}});
}

TEST(ReferenceAttention, ByHand) {
  const Sizes z{.batch = 1, .seq = 2, .key_seq = 2, .kv_heads = 1, .group = 1, .head_dim = 1};
  Tensor q(z.q(), DType::f64, {1, 1}), k(z.k(), DType::f64, {0, std::log(3.0)}), v(z.k(), DType::f64, {4, 8});
  Tensor o(z.q(), DType::f64), lse(z.lse(), DType::f64);
  const Attributes attributes = {{"causal", int64_t{1}}, {"scale", 1.0}, {"dropout", 0.0}, {"key", ""}};
  run_reference({.kind = "attention", .attributes = attributes}, {&q, &k, &v}, {&o, &lse});
  expect_close(o, {4, 7}, 1e-14, 0);  // the second: a quarter of 4 and three of 8
  expect_close(lse, {0, std::log(4.0)}, 1e-14, 1e-14);

  Tensor starts({{"batch", 1}, {"seq", 2}}, DType::i32, {1, 1});
  run_reference({.kind = "attention", .attributes = attributes}, {&q, &k, &v, &starts}, {&o, &lse});
  expect_close(o, {0, 8}, 1e-14, 0);
  expect_close(lse, {-std::numeric_limits<double>::infinity(), std::log(3.0)}, 1e-14, 0);
}

// The rows of a zigzag share are those of the whole: masks and dropout know global indices only.
TEST(ReferenceAttention, SharesOfQueriesAgreeWithTheWhole) {
  const Sizes whole{.batch = 2, .seq = 8, .key_seq = 8}, half{.batch = 1, .seq = 4, .key_seq = 8};
  Tensor q = random_tensor(whole.q(), DType::f64, 1), k = random_tensor(whole.k(), DType::f64, 2);
  Tensor v = random_tensor(whole.k(), DType::f64, 3), o(whole.q(), DType::f64), lse(whole.lse(), DType::f64);
  const Trial trial{.kind = "attention", .attributes = attributes_of(1, 0.5), .numbers = {.seed = 1, .step = 2}};
  run_reference(trial, {&q, &k, &v}, {&o, &lse});

  const int64_t row = q.elements() / 16, key_row = k.elements() / 16;  // of one (batch, seq)
  const std::vector<int64_t> places = {0, 1, 6, 7};
  for (int64_t batch : {0, 1}) {
    Tensor q1(half.q(), DType::f64), k1(half.k(), DType::f64), v1(half.k(), DType::f64);
    for (int64_t i = 0; i < q1.elements(); ++i) {
      q1.set(i, q.get((batch * 8 + places[static_cast<size_t>(i / row)]) * row + i % row));
    }
    for (int64_t i = 0; i < k1.elements(); ++i) {
      k1.set(i, k.get(batch * 8 * key_row + i));
      v1.set(i, v.get(batch * 8 * key_row + i));
    }
    Tensor o1(half.q(), DType::f64), lse1(half.lse(), DType::f64);
    Trial share = trial;
    share.indices = {{"seq", DimIndex({{0, 2}, {6, 2}}, 8)}, {"batch", DimIndex({{batch, 1}}, 2)}};
    run_reference(share, {&q1, &k1, &v1}, {&o1, &lse1});
    for (int64_t i = 0; i < o1.elements(); ++i) {
      EXPECT_EQ(o1.get(i), o.get((batch * 8 + places[static_cast<size_t>(i / row)]) * row + i % row));
    }
  }
}

}  // namespace
}  // namespace kintsugi::kernels::reference::attention_test
