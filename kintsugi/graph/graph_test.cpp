#include "kintsugi/graph/graph.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/graph/copy.h"
#include "kintsugi/graph/differentiate.h"
#include "kintsugi/graph/print.h"

namespace kintsugi::graph::graph_test {
namespace {

using tensor::Attributes;
using tensor::DType;
using tensor::Shape;
using tensor::Type;

OutTypes like_first(Types ins, const Attributes&) {
  return {ins[0]};
}

// A few operations that represent all: this module knows none by name except those that its building blocks use.
const OpTable& table() {
  using tensor::optional;
  using tensor::rest;
  static const OpTable rows({
      {.kind = "input", .outs = {"y"}},
      {.kind = "state", .outs = {"y"}},
      {.kind = "accumulate", .ins = {"x"}, .outs = {"y"}, .effect = true},
      {.kind = "assign", .ins = {"x"}, .effect = true},
      {.kind = "fill", .outs = {"y"}},
      {.kind = "add",
       .ins = {rest("x")},
       .outs = {"y"},
       .infer = like_first,
       .grad = [](Graph&, const Op& op,
                  std::span<const ValueId> dy) { return std::vector<ValueId>(op.ins.size(), dy[0]); }},
      {.kind = "sum", .ins = {"x"}, .outs = {"y"}},
      {.kind = "scale",
       .ins = {"x"},
       .outs = {"y"},
       .infer = like_first,
       .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
         return {g.scale(dy[0], op.attributes.number("by"))};
       }},
      {.kind = "stop", .ins = {"x"}, .outs = {"y"}, .infer = like_first},
      {.kind = "pair",
       .ins = {"x"},
       .outs = {"y", "z"},
       .infer = [](Types ins, const Attributes&) -> OutTypes {
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
       .ins = {"x"},
       .outs = {"y"},
       .infer = like_first,
       .grad = [](Graph&, const Op&, std::span<const ValueId>) -> std::vector<ValueId> { return {}; }},
      {.kind = "narrow",
       .ins = {"x"},
       .outs = {"y"},
       .infer = like_first,
       .grad = [](Graph& g, const Op&, std::span<const ValueId>) -> std::vector<ValueId> {
         return {g.fill(0.0, {Shape{}, DType::f32})};
       }},
      // y = x * by + shift; optionally a statistic of x.
      {.kind = "shifted",
       .ins = {"x", optional("shift"), "by"},
       .outs = {"y", optional("statistic"), "z"},
       .infer = [](Types ins, const Attributes& a) -> OutTypes {
         if (!a.has("statistic")) return {ins["x"], kAbsent, ins["by"]};
         return {ins["x"], {Shape{}, DType::f64}, ins.has("shift") ? ins["shift"] : ins["by"]};
       },
       .grad = [](Graph& g, const Op& op, std::span<const ValueId> d) -> std::vector<ValueId> {
         const ValueId shift = op.in("shift");
         return {g.scale(d[0], 2.0), shift == kNone ? kNone : g.scale(d[0], 3.0), d[2]};
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
  s.states.add({.name = "w.m", .type = s.states[w].type, .kind = StateKind::optimizer, .weight = w, .init = {}});
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
            "[graph] internal error: state \"w\" exists twice");
  EXPECT_EQ(error_of([&] { s.g.apply("fill", {}); }),
            "[graph] internal error: the outputs of fill do not follow from its operands");
  EXPECT_EQ(error_of([&] { s.g.op("pair", {x}); }), "[graph] internal error: pair has 2 outputs");
  EXPECT_EQ(error_of([&] { s.g.op("matmul", {x}); }), "[graph] internal error: no operation \"matmul\"");
  EXPECT_EQ(error_of([&] { s.g.op("scale", {}); }), "[graph] internal error: scale lacks its operand \"x\"");
  EXPECT_EQ(error_of([&] { s.g.op("scale", {kNone}); }), "[graph] internal error: scale lacks its operand \"x\"");
  EXPECT_EQ(error_of([&] { s.g.op("scale", {x, x}); }), "[graph] internal error: scale has no operand 1; it has x");
  EXPECT_EQ(error_of([&] {
              s.g.apply("shifted", {x, x});
            }),
            "[graph] internal error: shifted lacks its operand \"by\"");
  EXPECT_EQ(error_of([&] { s.g.make("pair", {x}, {kX}); }), "[graph] internal error: pair lacks its output \"z\"");
  EXPECT_EQ(error_of([&] { s.g.make("sum", {x}, {kX, kX}); }), "[graph] internal error: sum has no output 1; it has y");
  EXPECT_EQ(error_of([&] { s.g.add({x, kNone}); }), "[graph] internal error: add lacks its operand \"x\"");
  EXPECT_EQ(error_of([&] { s.g.op_at(0).in("x"); }), "[operands] internal error: no \"x\" among none");
  const OperandList names = {"x", tensor::optional("shift")};
  EXPECT_EQ(error_of([&] { Types(names, {&kX, 1}, 0b10)["shift"]; }), "[graph] internal error: \"shift\" is absent");
  EXPECT_EQ(error_of([&] {
              Types(names, {&kX, 1}, 0b10)["gain"];
            }),
            "[operands] internal error: no \"gain\" among x, [shift]");
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

TEST(Graph, OperandsAndOutputsByName) {
  Small s;
  const ValueId x = s.g.input("x", kX), shift = s.g.input("shift", kX), by = s.g.input("by", kX);
  const auto op_of = [&](const std::vector<ValueId>& outs) {
    return s.g.op_at(static_cast<size_t>(s.g.value(outs[0]).op));
  };
  const Op all = op_of(s.g.apply("shifted", {x, shift, by}, {{"statistic", int64_t{1}}}));
  EXPECT_EQ(all.absent, tensor::Absent{});
  EXPECT_EQ(all.in("shift"), shift);
  EXPECT_EQ(s.g.type(all.out("statistic")).dtype, DType::f64);
  const Op some = op_of(s.g.apply("shifted", {x, kNone, by}));
  EXPECT_EQ(some.absent, (tensor::Absent{.ins = 0b10, .outs = 0b10}));
  EXPECT_EQ(some.ins, (std::vector<ValueId>{x, by}));
  EXPECT_EQ(some.in("shift"), kNone);
  EXPECT_EQ(some.in("by"), by);
  EXPECT_EQ(some.out("statistic"), kNone);
  EXPECT_EQ(some.out("z"), some.outs[1]);
  EXPECT_EQ(some.by_position(some.ins), (std::vector<ValueId>{x, kNone, by}));

  Graph again("again", table(), s.states);
  for (size_t i = 0; i < 3; ++i) append_copy(again, s.g, s.g.op_at(i), {});
  append_copy(again, s.g, some, {x, by});
  EXPECT_EQ(again.op_at(3).absent, some.absent);
  EXPECT_EQ(again.type(again.op_at(3).out("z")), kX);
}

TEST(Differentiate, AnAbsentOperandHasNoGradient) {
  for (const bool shifts : {false, true}) {
    Small s;
    const ValueId x = s.g.scale(s.g.input("x", kX), 1.0), by = s.g.scale(s.g.input("by", kX), 1.0);
    const ValueId shift = shifts ? s.g.scale(s.g.input("shift", kX), 1.0) : kNone;
    const std::vector<ValueId> outs = s.g.apply("shifted", {x, shift, by});
    const ValueId sum = s.g.add({outs[0], outs[1]});
    differentiate(s.g, sum, s.g.fill(1.0, kX));
    std::string text = print(s.g);
    text = text.substr(text.find(" backward"));
    EXPECT_EQ(text, shifts ? " backward layer 0\n"
                             "  %10 scale[batch:2 embed:3] fp32 = scale(%9)  by=2\n"
                             "  %11 scale[batch:2 embed:3] fp32 = scale(%9)  by=3\n"
                             "  %12 scale[batch:2 embed:3] fp32 = scale(%11)  by=1\n"
                             "  %13 scale[batch:2 embed:3] fp32 = scale(%9)  by=1\n"
                             "  %14 scale[batch:2 embed:3] fp32 = scale(%10)  by=1\n"
                           : " backward layer 0\n"
                             "  %8 scale[batch:2 embed:3] fp32 = scale(%7)  by=2\n"
                             "  %9 scale[batch:2 embed:3] fp32 = scale(%7)  by=1\n"
                             "  %10 scale[batch:2 embed:3] fp32 = scale(%8)  by=1\n");
  }
}

TEST(OpTable, ARowSpeaksOnlyOfWhatItHas) {
  const auto error = [](const std::vector<OpRow>& rows) { return error_of([&] { OpTable table(rows); }); };
  EXPECT_EQ(error({{.kind = "a", .ins = {"x"}, .outs = {"y"}, .in_place = {{"y", "z"}}}}),
            "[graph] internal error: a has no \"z\" among x");
  EXPECT_EQ(error({{.kind = "a", .outs = {"y"}, .combine = {{"z", Combiner::max}}}}),
            "[graph] internal error: a has no \"z\" among y");
  EXPECT_EQ(error({{.kind = "a", .outs = {"y"}, .accumulates = {"x"}}}),
            "[graph] internal error: a has no \"x\" among y");
  EXPECT_EQ(error({{.kind = "a"}, {.kind = "b"}, {.kind = "a"}}),
            "[graph] internal error: a occurs twice in the table");
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

// A value used three times gets one sum, in the order in which its gradients become known; each read of a weight is a
// separate use; reading a moment gives no gradient.
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
  s.g.scale(s.g.read(v), 2.0);                          // has no effect
  const ValueId still = s.g.op("stop", {s.g.read(u)});  // passes no gradient
  const ValueId y = s.g.add({two[1], still});
  const std::vector<StateGradient> found = differentiate(s.g, y, s.g.fill(1.0, kX));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].state, w);
  // One of two gradients was given.
  EXPECT_EQ(to_string(s.g.op_at(static_cast<size_t>(s.g.value(found[0].gradient).op)).attributes), "by=1");
}

// w is frozen and v is trained: y = a b, where a = 2 w needs no gradient and b = 3 v w does.
TEST(Differentiate, StopsAtFrozenWeights) {
  Small s;
  const StateId w = s.states.add({.name = "w", .type = kX, .frozen = true}),
                v = s.states.add({.name = "v", .type = kX}), u = s.states.add({.name = "u", .type = kX});
  s.states.freeze(u);
  const ValueId a = s.g.scale(s.g.read(w), 2.0);
  const ValueId b = s.g.scale(s.g.add({s.g.read(v), s.g.scale(s.g.read(u), 5.0)}), 3.0);
  const ValueId y = s.g.add({a, b});
  const size_t before = s.g.ops().size();
  const std::vector<StateGradient> found = differentiate(s.g, y, s.g.fill(1.0, kX));
  std::string text = print(s.g);
  EXPECT_EQ(text.substr(text.find(" backward")),
            " backward layer 0\n"
            "  %9 scale[batch:2 embed:3] fp32 = scale(%8)  by=3\n");
  EXPECT_EQ(s.g.ops().size(), before + 2);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].state, v);
  EXPECT_EQ(found[0].gradient, 9);
  s.states.add({.name = "v.gradient", .type = kX, .kind = StateKind::gradient, .weight = v});
  EXPECT_EQ(error_of([&] { s.states.freeze(v); }), "[graph] internal error: \"v\" cannot be frozen");
}

TEST(Graph, PruneKeepsWhatIsNeededAndEffects) {
  Small s;
  const StateId w = s.states.add({.name = "w", .type = kX});
  const ValueId x = s.g.read(w);
  const size_t first = s.g.ops().size();
  const ValueId unread = s.g.scale(x, 2.0), kept = s.g.scale(x, 3.0), stored = s.g.scale(x, 4.0);
  s.g.scale(unread, 5.0);
  s.g.assign(stored, w);
  const ValueId end = s.g.scale(kept, 6.0);
  EXPECT_EQ(s.g.prune(first, {kNone, end, x}), (std::vector<ValueId>{kNone, 3, 0}));
  EXPECT_EQ(print(s.g),
            "graph small\n"
            " forward layer 0\n"
            "  %0 w[batch:2 embed:3] fp32 = state()  w\n"
            "  %1 scale[batch:2 embed:3] fp32 = scale(%0)  by=3\n"
            "  %2 scale[batch:2 embed:3] fp32 = scale(%0)  by=4\n"
            "  assign(%2)  w\n"
            "  %3 scale[batch:2 embed:3] fp32 = scale(%1)  by=6\n");
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
  OpRow row = {.kind = "x", .ins = {"big", "small"}, .outs = {"y"}};
  EXPECT_EQ(cost(row, ins, outs, {}).flops, 10);
  EXPECT_EQ(cost(row, ins, outs, {}).memory_bytes, 80 + 80 + 80);
  row.flops = [](Types i, Types, const Attributes&) { return 3.0 * static_cast<double>(i["big"].shape.elements()); };
  EXPECT_EQ(cost(row, ins, outs, {}).flops, 120);
  EXPECT_EQ(cost(row, ins, {}, {}).memory_bytes, 160);
  row.view = true;
  EXPECT_EQ(cost(row, ins, outs, {}).flops, 0);
  EXPECT_EQ(cost(row, ins, outs, {}).memory_bytes, 0);
}

}  // namespace kintsugi::graph::graph_test
