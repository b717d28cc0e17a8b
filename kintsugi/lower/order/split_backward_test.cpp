#include "kintsugi/lower/order/split_backward.h"

#include <gtest/gtest.h>

#include "kintsugi/graph/print.h"
#include "kintsugi/lower/step_test.h"

namespace kintsugi::lower::split_backward_test {
namespace {

// x w + b, a norm, and again: input gradients are needed below, weight gradients only by accumulators.
struct Two : TestStep {
  Two() {
    const StateId w = weight("w", {{"embed", 3}, {"ffn", 4}}), b = weight("b", {{"ffn", 4}}),
                  v = weight("v", {{"ffn", 4}, {"out", 2}});
    finish([=](Graph& g) {
      const ValueId x = g.input("x", {{{"batch", 2}, {"embed", 3}}, tensor::DType::f32});
      const ValueId h = g.add({g.contract(x, g.read(w), "batch ffn", tensor::DType::f32), g.read(b)});
      return g.contract(g.op("gelu", {h}, {{"form", "tanh"}}), g.read(v), "batch out", tensor::DType::f32);
    });
  }
};

std::string text(const Graph& g) {
  std::string t;
  for (const graph::Op& op : g.ops()) {
    if (op.phase == graph::Phase::forward) continue;
    t += std::string(name_of(op.phase)) + " " + std::string(op.kind());
    if (op.state != graph::kNone) t += " " + g.states()[op.state].name;
    t += "\n";
  }
  return t;
}

}  // namespace

TEST(SplitBackward, WhatOnlyAccumulatorsReadIsOfTheWeights) {
  const Two step;
  EXPECT_EQ(text(split_backward(step.micro)),
            "backward broadcast\n"
            "backward contract\n"
            "weight contract\n"
            "backward gelu_grad\n"
            "weight accumulate v.gradient\n"
            "weight sum\n"
            "weight accumulate b.gradient\n"
            "backward contract\n"
            "weight contract\n"
            "weight accumulate w.gradient\n");
  EXPECT_EQ(split_backward(step.micro).ops().size(), step.micro.ops().size());
}

}  // namespace kintsugi::lower::split_backward_test
