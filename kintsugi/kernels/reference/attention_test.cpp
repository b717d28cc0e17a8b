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
  Shape sinks() const { return {{"kv_heads", kv_heads}, {"group", group}}; }
  Shape lse() const { return {{"batch", batch}, {"seq", seq}, {"kv_heads", kv_heads}, {"group", group}}; }
};

Attributes attributes_of(int64_t causal, double dropout = 0) {
  return {{"causal", causal}, {"scale", 0.6}, {"dropout", dropout}, {"key", "layer0.attention"}};
}

// Optional operands besides q, k, v. The sinks are random.
struct Extra {
  std::vector<Tensor> starts = {}, key_starts = {};
  bool sinks = false;
};

void check(const Sizes& z, Trial trial, const Extra& extra = {}) {
  trial.kind = "attention";
  trial.numbers = {.seed = 5, .step = 3, .batch_offset = 4};
  GradientCheck check{.forward = trial,
                      .ins = {random_tensor(z.q(), DType::f64, 1, -2, 2), random_tensor(z.k(), DType::f64, 2, -2, 2),
                              random_tensor(z.k(), DType::f64, 3)},
                      .outs = {{z.q(), DType::f64}, {z.lse(), DType::f64}},
                      .with_respect_to = {0, 1, 2},
                      .num_cotangents = 1};
  check.ins.insert(check.ins.end(), extra.starts.begin(), extra.starts.end());
  check.ins.insert(check.ins.end(), extra.key_starts.begin(), extra.key_starts.end());
  if (extra.starts.empty()) check.absent |= 1u << AttentionIn::kStarts;
  if (extra.key_starts.empty()) check.absent |= 1u << AttentionIn::kKeyStarts;
  if (extra.sinks) {
    check.with_respect_to.push_back(check.ins.size());
    check.ins.push_back(random_tensor(z.sinks(), DType::f64, 4));
  }
  check.gradients = [&](auto& ins, auto& outs, auto& dy) {
    std::vector<Tensor> d = {Tensor(z.q(), DType::f64), Tensor(z.k(), DType::f64), Tensor(z.k(), DType::f64)};
    if (extra.sinks) d.emplace_back(z.sinks(), DType::f64);
    std::vector<Tensor*> operands = pointers(ins, check.absent), gradients = pointers(d);
    operands.resize(AttentionGradIn::kO, nullptr);
    for (Tensor* x : {&outs[0], &outs[1], &dy[0]}) operands.push_back(x);
    Trial grad = trial;
    grad.kind = "attention_grad";
    run_reference(grad, operands, gradients);
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
  // One query of each sequence sees nothing.
  check({}, {.attributes = attributes_of(1, 0.3)},
        {.starts = {Tensor({{"batch", 2}, {"seq", 5}}, DType::i32, {0, 0, 2, 2, 5, 0, 1, 1, 4, 3})}});
  check({}, {.attributes = attributes_of(0)},
        {.starts = {Tensor({{"batch", 2}, {"seq", 5}}, DType::i32, {0, 0, 2, 2, 5, 0, 1, 1, 4, 3})}});
}

TEST(ReferenceAttention, GradientWithZigzagAndPadding) {
  check({.seq = 5, .key_seq = 6}, {.attributes = attributes_of(1, 0.3),
                                   .indices = {{"seq", DimIndex({{1, 2}, {6, 2}, {-1, 1}}, 9)},
                                               {"key_seq", DimIndex({{0, 3}, {5, 2}, {-1, 1}}, 9)}}});
}

TEST(ReferenceAttention, GradientInAWindow) {
  for (const int64_t causal : {0, 1})
    for (const int64_t window : {1, 3}) {
      Attributes attributes = attributes_of(causal, 0.3);
      attributes.set("window", window);
      check({}, {.attributes = attributes});
    }
}

TEST(ReferenceAttention, GradientOfCappedScores) {
  for (const int64_t causal : {0, 1}) {
    Attributes attributes = attributes_of(causal, 0.3);
    attributes.set("softcap", 0.8);
    check({}, {.attributes = attributes});
  }
}

TEST(ReferenceAttention, GradientOfDocumentsAndSinks) {
  // Two documents, and a query of a third that sees nothing.
  const Tensor starts({{"batch", 2}, {"seq", 5}}, DType::i32, {0, 0, 2, 2, 2, 0, 0, 0, 3, -1});
  const Tensor key_starts({{"batch", 2}, {"key_seq", 5}}, DType::i32, {0, 0, 2, 2, 2, 0, 0, 0, 3, -2});
  for (const int64_t causal : {0, 1})
    for (const bool sinks : {false, true})
      check({}, {.attributes = attributes_of(causal, 0.3)},
            {.starts = {starts}, .key_starts = {key_starts}, .sinks = sinks});
  check({}, {.attributes = attributes_of(1)}, {.sinks = true});
}

TEST(ReferenceAttention, WhatIsVisible) {
  const Sizes z{.batch = 1, .seq = 5, .key_seq = 5, .kv_heads = 1, .group = 1, .head_dim = 1};
  Tensor q = filled(z.q(), DType::f64, 0), k = filled(z.k(), DType::f64, 0),
         v(z.k(), DType::f64, {1, 10, 100, 1e3, 1e4});
  Tensor o(z.q(), DType::f64), lse(z.lse(), DType::f64);
  // Equal scores: o times their number is the sum of the visible values.
  const auto sums = [&](const Attributes& attributes, Tensor* starts = nullptr, Tensor* key_starts = nullptr) {
    run_reference({.kind = "attention", .attributes = attributes}, {&q, &k, &v, starts, key_starts}, {&o, &lse});
    Tensor sum = o;
    for (int64_t i = 0; i < 5; ++i) sum.set(i, o.get(i) * std::exp(lse.get(i)));
    return sum;
  };
  Attributes causal = attributes_of(1), full = attributes_of(0);
  causal.set("window", int64_t{2}), full.set("window", int64_t{2});
  expect_close(sums(causal), {1, 11, 110, 1100, 11000}, 1e-14, 0);
  expect_close(sums(full), {11, 111, 1110, 11100, 11000}, 1e-14, 0);
  Tensor starts({{"batch", 1}, {"seq", 5}}, DType::i32, {0, 0, 2, 2, 4});
  Tensor key_starts({{"batch", 1}, {"key_seq", 5}}, DType::i32, {0, 0, 2, 2, 4});
  expect_close(sums(attributes_of(0), &starts, &key_starts), {11, 11, 1100, 1100, 10000}, 1e-14, 0);
  expect_close(sums(attributes_of(1), &starts, &key_starts), {1, 11, 100, 1100, 10000}, 1e-14, 0);
}

TEST(ReferenceAttention, CapAndSinkByHand) {
  const Sizes z{.batch = 1, .seq = 1, .key_seq = 2, .kv_heads = 1, .group = 1, .head_dim = 1};
  Tensor q(z.q(), DType::f64, {3}), k(z.k(), DType::f64, {1, -1}), v(z.k(), DType::f64, {4, 8});
  Tensor o(z.q(), DType::f64), lse(z.lse(), DType::f64), sinks(z.sinks(), DType::f64, {std::log(5.0)});
  const Attributes attributes = {{"causal", int64_t{0}}, {"scale", 1.0}, {"softcap", 2.0}};
  const double a = std::exp(2 * std::tanh(1.5)), b = 1 / a;
  run_reference({.kind = "attention", .attributes = attributes}, {&q, &k, &v, nullptr, nullptr, &sinks}, {&o, &lse});
  expect_close(o, {(4 * a + 8 * b) / (a + b + 5)}, 1e-14, 0);
  expect_close(lse, {std::log(a + b + 5)}, 1e-14, 0);
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

// The rows of a zigzag share equal those of the whole: masks and dropout use global indices only.
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
