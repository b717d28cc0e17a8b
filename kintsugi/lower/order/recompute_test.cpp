#include "kintsugi/lower/order/recompute.h"

#include <gtest/gtest.h>

#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/graph/print.h"
#include "kintsugi/lower/step_test.h"

namespace kintsugi::lower::recompute_test {
namespace {

using graph::Phase;
using tensor::DType;
using tensor::Shape;
using tensor::Type;

const Type kX = {Shape{{"batch", 2}, {"embed", 4}}, DType::f32};

constexpr Recompute kFull = {.what = Recompute::What::full}, kSelective = {.what = Recompute::What::selective};

// y = relu(input), then for each layer y += dropout(relu(y w)) w, then, as the head, the sum.
struct Layers : TestStep {
  explicit Layers(int layers) {
    std::vector<StateId> w;
    for (int i = 0; i < layers; ++i) w.push_back(weight("w" + std::to_string(i), Shape{{"embed", 4}, {"ffn", 3}}, i));
    finish([&](Graph& g) {
      g.layer = -1;
      ValueId y = g.op("relu", {g.input("x", kX)}, {}, "y");
      for (int i = 0; i < layers; ++i) {
        g.layer = i;
        const ValueId table = g.read(w[static_cast<size_t>(i)]);
        const ValueId h = g.op("relu", {g.contract(y, table, "batch ffn", DType::f32)});
        const ValueId masked = g.op("dropout", {h}, {{"p", 0.5}, {"key", "k" + std::to_string(i)}});
        y = g.add({y, g.contract(masked, table, "batch embed", DType::f32)});
      }
      g.layer = layers;
      return y;
    });
  }
};

// One layer of attention with equal query, key and value, and the projection w of its output.
struct Attention : TestStep {
  Attention() {
    const StateId w = weight("w", Shape{{"kv_heads", 1}, {"group", 1}, {"head_dim", 4}, {"embed", 5}});
    finish([&](Graph& g) {
      const Shape q = {{"batch", 1}, {"seq", 3}, {"kv_heads", 1}, {"group", 1}, {"head_dim", 4}};
      const Shape k = {{"batch", 1}, {"seq", 3}, {"kv_heads", 1}, {"head_dim", 4}};
      const ValueId query = g.op("relu", {g.input("q", {q, DType::f32})}, {}, "query");
      const ValueId key = g.op("relu", {g.input("k", {k, DType::f32})}, {}, "key");
      const ValueId keys = g.rename(key, "seq", "key_seq");
      const ValueId o = g.apply("attention", {query, keys, keys},
                                {{"causal", int64_t{1}}, {"scale", 0.5}, {"dropout", 0.1}, {"key", "a"}}, "o")[0];
      return g.contract(o, g.read(w), "batch seq embed", DType::f32);
    });
  }
};

// The lines of a print from the one that starts with `from` to before the one that starts with `to`.
std::string between(const std::string& text, const std::string& from, const std::string& to = "\n") {
  const size_t begin = text.find(from), end = text.find(to, begin);
  return begin == std::string::npos ? "no " + from : text.substr(begin, end - begin);
}

// "0: relu add": by layer, the names of what is kept.
std::string names(const Graph& g) {
  std::string text;
  int layer = -2;
  for (ValueId v : kept(g)) {
    const int now = g.op_at(static_cast<size_t>(g.value(v).op)).layer;
    text += (now == layer ? " " : (text.empty() ? "" : ", ") + std::to_string(now) + ": ") + g.value(v).name;
    layer = now;
  }
  return text;
}

TEST(Recompute, FullRepeatsWhatIsReadInFrontOfTheLayer) {
  const Layers two(2);
  const std::string text = print(recompute(two.micro, kFull, 2));
  const std::string before = print(two.micro);
  EXPECT_EQ(between(text, "graph", " backward"), between(before, "graph", " backward"));
  EXPECT_EQ(between(text, " backward layer 0", " backward layer -1"),
            R"( backward layer 0
  %27 contract.again[batch:2 ffn:3] fp32 = contract(%1, %2)  dims="batch ffn" dtype=fp32
  %28 relu.again[batch:2 ffn:3] fp32 = relu(%27)
  %29 dropout.again[batch:2 ffn:3] fp32 = dropout(%28)  p=0.5 key=k0
  %30 add[batch:2 embed:4] fp32 = add(%16, %24)
  %31 contract[batch:2 ffn:3] fp32 = contract(%30, %2)  dims="batch ffn" dtype=fp32
  %32 contract[embed:4 ffn:3] fp32 = contract(%29, %30)  dims="embed ffn" dtype=fp32
  %33 dropout[batch:2 ffn:3] fp32 = dropout(%31)  p=0.5 key=k0
  %34 relu_grad[batch:2 ffn:3] fp32 = relu_grad(%28, %33)
  %35 contract[batch:2 embed:4] fp32 = contract(%34, %2)  dims="batch embed" dtype=fp32
  %36 contract[embed:4 ffn:3] fp32 = contract(%1, %34)  dims="embed ffn" dtype=fp32
  %37 add[embed:4 ffn:3] fp32 = add(%32, %36)
  accumulate(%37)  w0.gradient
)");
}

TEST(Recompute, SelectiveRepeatsAttentionWhereItIsRead) {
  const Attention one;
  EXPECT_EQ(names(one.micro), "0: query key o.0 o.1");
  const Graph again = recompute(one.micro, kSelective, 1);
  EXPECT_EQ(names(again), "0: query key");
  EXPECT_EQ(between(print(again), " backward", "  accumulate"),
            R"( backward layer 0
  %11 broadcast[batch:1 seq:3 embed:5] fp32 = broadcast(%10)
  %12 contract[batch:1 seq:3 kv_heads:1 group:1 head_dim:4] fp32 = contract(%11, %7)  dims="batch seq kv_heads group head_dim" dtype=fp32
  %13 o.again.0[batch:1 seq:3 kv_heads:1 group:1 head_dim:4] fp32, %14 o.again.1[batch:1 seq:3 kv_heads:1 group:1] fp32 = attention(%1, %4, %4)  causal=1 scale=0.5 dropout=0.1 key=a
  %15 contract[kv_heads:1 group:1 head_dim:4 embed:5] fp32 = contract(%13, %11)  dims="kv_heads group head_dim embed" dtype=fp32
)");
  EXPECT_NE(print(again).find("= attention_grad(%1, %4, %4, %13, %14, %12)"), std::string::npos) << print(again);
}

TEST(Recompute, WithNothingToRepeatTheGraphStays) {
  const Layers two(2);
  EXPECT_EQ(print(recompute(two.micro, {}, 2)), print(two.micro));
  EXPECT_EQ(print(recompute(two.micro, kFull, 0)), print(two.micro));
  EXPECT_EQ(print(recompute(two.micro, kSelective, 2)), print(two.micro));
  const Graph again = recompute(two.micro, kFull, 2);
  EXPECT_EQ(again.phase, two.micro.phase);
  EXPECT_EQ(again.layer, two.micro.layer);
}

TEST(Recompute, EveryNthLayer) {
  const Layers four(4);
  const auto every = [&](int64_t n) { return names(recompute(four.micro, {Recompute::What::full, n}, 4)); };
  EXPECT_EQ(names(four.micro), "-1: y, 0: relu dropout add, 1: relu dropout add, 2: relu dropout add, 3: relu dropout");
  EXPECT_EQ(every(1), "-1: y, 0: add, 1: add, 2: add");
  EXPECT_EQ(every(2), "-1: y, 0: add, 1: relu dropout add, 2: add, 3: relu dropout");
  EXPECT_EQ(every(3), "-1: y, 0: add, 1: relu dropout add, 2: relu dropout add");
  EXPECT_EQ(every(9), "-1: y, 0: add, 1: relu dropout add, 2: relu dropout add, 3: relu dropout");
}

TEST(Recompute, RefusesEveryNoLayer) {
  const Layers one(1);
  try {
    recompute(one.micro, {Recompute::What::full, 0}, 1);
    FAIL();
  } catch (const base::InternalError& error) {
    EXPECT_STREQ(error.what(), "[recompute] internal error: every 0 layers");
  }
}

// A layer whose inner value is also read by the next layer, which is not recomputed. The gradient of tanh reads its
// operand.
TEST(Recompute, WhatAnotherLayerReadsIsKept) {
  TestStep step;
  const StateId w = step.weight("w", Shape{{"embed", 4}, {"ffn", 3}});
  step.finish([&](Graph& g) {
    g.layer = 0;
    const ValueId inner = g.op("tanh", {g.contract(g.input("x", kX), g.read(w), "batch ffn", DType::f32)}, {}, "inner");
    const ValueId after = g.op("tanh", {g.op("tanh", {inner}, {}, "middle")}, {}, "after");
    g.layer = 1;
    return g.add({inner, after});
  });
  EXPECT_EQ(names(step.micro), "0: contract inner middle");
  EXPECT_EQ(names(recompute(step.micro, kFull, 1)), "0: inner");
}

// A value read before a state changed cannot be recomputed afterwards.
TEST(Recompute, WhatFollowsFromAStateThatChangesIsKept) {
  for (const bool changes : {false, true}) {
    TestStep step;
    const StateId w = step.weight("w", Shape{{"embed", 4}, {"ffn", 3}});
    const StateId mean = step.states.add({.name = "mean", .type = kX, .kind = StateKind::statistic});
    step.finish([&](Graph& g) {
      const ValueId x = g.input("x", kX);
      const ValueId shifted = g.add({x, g.read(mean)});
      if (changes) g.assign(x, mean);
      return g.op("relu", {g.contract(g.op("relu", {shifted}), g.read(w), "batch ffn", DType::f32)}, {}, "after");
    });
    EXPECT_EQ(names(recompute(step.micro, kFull, 1)), changes ? "0: add" : "");
  }
}

// Views, states and free values need no memory.
TEST(Kept, IsWhatHasMemory) {
  TestStep step;
  Graph& g = step.micro;
  const StateId w = step.weight("w", Shape{{"batch", 2}, {"embed", 4}});
  const ValueId y = g.op("relu", {g.input("x", kX)}, {}, "y");
  const ValueId view = g.rename(g.rename(y, "embed", "ffn"), "ffn", "vocab");
  const ValueId of_state = g.rename(g.read(w), "embed", "vocab");
  const ValueId rows = g.make("sum", {y}, {{Shape{{"batch", 2}}, DType::f32}}, {}, "rows")[0];
  const ValueId wide = g.make("broadcast", {rows}, {g.type(view)})[0];
  g.op("relu", {view}, {}, "unread");
  g.phase = Phase::backward;
  g.add({view, of_state, wide, g.fill(1, g.type(view))});
  EXPECT_EQ(names(g), "0: y rows");
}

}  // namespace
}  // namespace kintsugi::lower::recompute_test
