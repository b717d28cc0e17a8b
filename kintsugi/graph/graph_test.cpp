#include "kintsugi/graph/graph.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/graph/differentiate.h"
#include "kintsugi/graph/print.h"

namespace kintsugi::graph {
namespace {

using tensor::Attributes;
using tensor::DType;
using tensor::Shape;
using tensor::Type;

std::vector<Type> like_first(Types ins, const Attributes&) {
  return {ins[0]};
}

// A few operations that stand for all: this room knows none by name but those that its building blocks ask for.
const OpTable& table() {
  static const OpTable rows({
      {.kind = "input"},
      {.kind = "state"},
      {.kind = "accumulate", .effect = true},
      {.kind = "assign", .effect = true},
      {.kind = "fill"},
      {.kind = "add",
       .infer = like_first,
       .grad = [](Graph&, const Op& op,
                  std::span<const ValueId> dy) { return std::vector<ValueId>(op.ins.size(), dy[0]); }},
      {.kind = "sum"},
      {.kind = "scale",
       .infer = like_first,
       .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
         return {g.scale(dy[0], op.attributes.number("by"))};
       }},
      {.kind = "stop", .infer = like_first},
      {.kind = "pair",
       .infer = [](Types ins, const Attributes&) -> std::vector<Type> {
         return {ins[0], ins[0]};
       },
       .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
         std::vector<ValueId> known;
         for (ValueId d : dy)
           if (d != kNone) known.push_back(d);
         return {
             g.op("scale", {g.add(known)}, {{"by", static_cast<double>(known.size())}}, op.ins.empty() ? "" : "dpair")};
       }},
      {.kind = "wrong",
       .infer = like_first,
       .grad = [](Graph&, const Op&, std::span<const ValueId>) -> std::vector<ValueId> { return {}; }},
      {.kind = "narrow",
       .infer = like_first,
       .grad = [](Graph& g, const Op&, std::span<const ValueId>) -> std::vector<ValueId> {
         return {g.fill(0.0, {Shape{}, DType::f32})};
       }},
  });
  return rows;
}

const Type kX = {{{"batch", 2}, {"embed", 3}}, DType::f32};

struct Small {
  StateTable states;
  Graph g{"small", table(), states};
};

template <typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const base::InternalError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST(Graph, PrintsOneOperationALine) {
  Small s;
  const StateId w = s.states.add(
      {.name = "w", .type = {{{"embed", 3}}, DType::bf16}, .decay = true, .init = {Init::Kind::normal, 0.02}});
  const StateId total =
      s.states.add({.name = "total", .type = {Shape{}, DType::f64}, .kind = StateKind::statistic, .layer = 1});
  s.states.add(
      {.name = "w.m", .type = s.states[w].type, .kind = StateKind::optimizer, .weight = w, .init = {}});
  const ValueId x = s.g.input("x", kX);
  s.g.layer = 1;
  const std::vector<ValueId> two = s.g.apply("pair", {x}, {{"p", 0.5}, {"key", "k"}}, "both");
  s.g.phase = Phase::backward;
  s.g.read(w);
  s.g.accumulate(s.g.sum_to(two[1], {Shape{}, DType::f64}), total);
  EXPECT_EQ(print(s.g),
            "graph small\n"
            " forward layer 0\n"
            "  %0 x[batch:2 embed:3] fp32 = input()  name=x\n"
            " forward layer 1\n"
            "  %1 both.0[batch:2 embed:3] fp32, %2 both.1[batch:2 embed:3] fp32 = pair(%0)  p=0.5 key=k\n"
            " backward layer 1\n"
            "  %3 w[embed:3] bf16 = state()  w\n"
            "  %4 sum[] fp64 = sum(%2)\n"
            "  accumulate(%4)  total\n");
  EXPECT_EQ(print(s.states),
            "states\n"
            "  weight w[embed:3] bf16  layer 0, begins at normal 0.02, decays\n"
            "  statistic total[] fp64  layer 1, begins at 0\n"
            "  optimizer w.m[embed:3] bf16  layer 0, begins at 0\n");
}

TEST(Graph, WhatDoesNotFitIsSaid) {
  Small s;
  s.states.add({.name = "w", .type = kX});
  const ValueId x = s.g.input("x", kX);
  EXPECT_EQ(error_of([&] { s.states.add({.name = "w", .type = kX}); }),
            "[graph] internal error: state \"w\" stands twice");
  EXPECT_EQ(error_of([&] { s.g.apply("fill", {}); }),
            "[graph] internal error: the outputs of fill do not follow from its operands");
  EXPECT_EQ(error_of([&] { s.g.op("pair", {x}); }), "[graph] internal error: pair has 2 outputs");
  EXPECT_EQ(error_of([&] { s.g.op("matmul", {x}); }), "[graph] internal error: no operation \"matmul\"");
  EXPECT_EQ(s.states.find("v"), kNone);
}

TEST(Graph, BuildingBlocksDoNothingWhereNothingIsToDo) {
  Small s;
  const ValueId x = s.g.input("x", kX);
  EXPECT_EQ(s.g.add({x}), x);
  EXPECT_EQ(s.g.sum_to(x, kX), x);
  EXPECT_EQ(s.g.ops().size(), 1u);
}

TEST(Graph, GradientsOfWeightsAreWide) {
  Small s;
  const Type narrow = {kX.shape, DType::f16};
  const StateId w = s.states.add({.name = "w", .type = narrow}),
                m = s.states.add({.name = "m", .type = narrow, .kind = StateKind::optimizer});
  EXPECT_EQ(s.g.gradient_type(s.g.read(w)).dtype, DType::f32);
  EXPECT_EQ(s.g.gradient_type(s.g.read(m)).dtype, DType::f16);
  EXPECT_EQ(s.g.gradient_type(s.g.input("x", narrow)).dtype, DType::f16);
}

TEST(Differentiate, AChain) {
  Small s;
  const StateId w = s.states.add({.name = "w", .type = kX});
  s.g.layer = 4;
  const ValueId y = s.g.scale(s.g.scale(s.g.read(w), 2.0), 3.0);
  s.g.layer = 5;
  const ValueId seed = s.g.fill(1.0, kX);
  const std::vector<StateGradient> found = differentiate(s.g, y, seed);
  EXPECT_EQ(print(s.g),
            "graph small\n"
            " forward layer 4\n"
            "  %0 w[batch:2 embed:3] fp32 = state()  w\n"
            "  %1 scale[batch:2 embed:3] fp32 = scale(%0)  by=2\n"
            "  %2 scale[batch:2 embed:3] fp32 = scale(%1)  by=3\n"
            " forward layer 5\n"
            "  %3 fill[batch:2 embed:3] fp32 = fill()  value=1\n"
            " backward layer 4\n"
            "  %4 scale[batch:2 embed:3] fp32 = scale(%3)  by=3\n"
            "  %5 scale[batch:2 embed:3] fp32 = scale(%4)  by=2\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].state, w);
  EXPECT_EQ(found[0].gradient, 5);
  EXPECT_EQ(found[0].layer, 4);
}

// A value that is used three times gets one sum, in the order in which its gradients become known; each read of a
// weight is a use of its own; a moment that is read has no gradient.
TEST(Differentiate, FanOutAdds) {
  Small s;
  const StateId w = s.states.add({.name = "w", .type = kX}),
                m = s.states.add({.name = "m", .type = kX, .kind = StateKind::optimizer});
  const ValueId a = s.g.read(w), b = s.g.read(w), c = s.g.read(m);
  const ValueId x = s.g.scale(a, 2.0);
  const ValueId y = s.g.add({s.g.scale(x, 3.0), s.g.scale(x, 5.0), x, b, c});
  const auto before = s.g.ops().size();
  const std::vector<StateGradient> found = differentiate(s.g, y, s.g.fill(1.0, kX));
  std::string text = print(s.g);
  EXPECT_EQ(text.substr(text.find(" backward")),
            " backward layer 0\n"
            "  %8 scale[batch:2 embed:3] fp32 = scale(%7)  by=5\n"
            "  %9 scale[batch:2 embed:3] fp32 = scale(%7)  by=3\n"
            "  %10 add[batch:2 embed:3] fp32 = add(%7, %8, %9)\n"
            "  %11 scale[batch:2 embed:3] fp32 = scale(%10)  by=2\n");
  EXPECT_EQ(s.g.ops().size(), before + 5);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].gradient, 7);
  EXPECT_EQ(found[1].gradient, 11);
  EXPECT_EQ(found[0].state, w);
  EXPECT_EQ(found[1].state, w);
}

TEST(Differentiate, OutputsThatNobodyUses) {
  Small s;
  const StateId w = s.states.add({.name = "w", .type = kX}), v = s.states.add({.name = "v", .type = kX}),
                u = s.states.add({.name = "u", .type = kX});
  const std::vector<ValueId> two = s.g.apply("pair", {s.g.read(w)});
  s.g.scale(s.g.read(v), 2.0);                          // leads nowhere
  const ValueId still = s.g.op("stop", {s.g.read(u)});  // lets nothing through
  const ValueId y = s.g.add({two[1], still});
  const std::vector<StateGradient> found = differentiate(s.g, y, s.g.fill(1.0, kX));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].state, w);
  // One of two gradients was known.
  EXPECT_EQ(to_string(s.g.op_at(static_cast<size_t>(s.g.value(found[0].gradient).op)).attributes), "by=1");
}

TEST(Differentiate, AWrongRuleIsSaid) {
  for (const auto& [kind, text] :
       {std::pair{"wrong", "[differentiate] internal error: wrong gives 0 gradients for 1 inputs"},
        std::pair{"narrow", "[differentiate] internal error: narrow: gradient [] of input 0 [batch:2 embed:3]"}}) {
    Small s;
    const ValueId y = s.g.op(kind, {s.g.input("x", kX)});
    EXPECT_EQ(error_of([&] { differentiate(s.g, y, s.g.fill(1.0, kX)); }), text);
  }
}

TEST(Cost, OfARow) {
  const Type big = {{{"a", 10}, {"b", 4}}, DType::bf16}, small = {{{"a", 10}}, DType::f64};
  const std::vector<Type> ins = {big, small}, outs = {small};
  OpRow row = {.kind = "x"};
  EXPECT_EQ(cost(row, ins, outs, {}).flops, 10);
  EXPECT_EQ(cost(row, ins, outs, {}).memory_bytes, 80 + 80 + 80);
  row.flops = [](Types i, Types, const Attributes&) { return 3.0 * static_cast<double>(i[0].shape.elements()); };
  EXPECT_EQ(cost(row, ins, outs, {}).flops, 120);
  EXPECT_EQ(cost(row, ins, {}, {}).memory_bytes, 160);
  row.view = true;
  EXPECT_EQ(cost(row, ins, outs, {}).flops, 0);
  EXPECT_EQ(cost(row, ins, outs, {}).memory_bytes, 0);
}

}  // namespace kintsugi::graph
