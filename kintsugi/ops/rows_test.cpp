// Every row: its shape rule and FLOPs by numbers, its errors by text, and the consistency of its claims.
#include "kintsugi/ops/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/ops/row_cases_test.h"

namespace kintsugi::ops::rows_test {
namespace {

std::string text(const std::vector<Type>& types) {
  std::string t;
  for (const Type& type : types) t += to_string(type.shape) + " " + std::string(name_of(type.dtype)) + "; ";
  return t;
}

std::vector<Type> types_of(const OutTypes& outs) {
  std::vector<Type> types;
  for (const OutTypes::One& one : outs.list()) types.push_back(one.type.value());
  return types;
}

std::string error_of(std::string_view kind, const std::vector<Type>& ins, const Attributes& attributes = {}) {
  try {
    const Case c = {kind, ins, attributes, {}, 0};
    c.row().infer(c.in_types(), attributes);
  } catch (const base::InternalError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST(OpRows, ShapesAndFlops) {
  std::set<std::string_view> seen;
  for (const Case& c : cases()) {
    const OpRow& row = operations().find(c.kind);
    seen.insert(row.kind);
    EXPECT_TRUE(row.ins.allows(c.ins.size(), c.absent().ins)) << c.kind;
    EXPECT_TRUE(row.effect || row.outs.allows(c.outs.size(), c.absent().outs)) << c.kind;
    if (row.infer) {
      EXPECT_EQ(text(types_of(row.infer(c.in_types(), c.attributes))), text(c.outs)) << c.kind;
    }
    EXPECT_EQ(cost(row, c.ins, c.outs, c.attributes, c.absent()).flops, c.flops) << c.kind;
    double bytes = 0;
    for (const auto* list : {&c.ins, &c.outs})
      for (const Type& t : *list)
        bytes += static_cast<double>(t.bytes()) * (c.attributes.has("filled") && t.shape.has("slot") ? 0.5 : 1.0);
    EXPECT_EQ(cost(row, c.ins, c.outs, c.attributes, c.absent()).memory_bytes, row.view ? 0 : bytes) << c.kind;
  }
  EXPECT_EQ(seen.size(), operations().rows().size());
}

TEST(OpRows, WhatDoesNotFitIsSaid) {
  EXPECT_EQ(error_of("add", {of(kX), of(kX, kB)}), "[add] internal error: bf16 and fp32");
  EXPECT_EQ(error_of("add", {of(kX), of("ffn")}), "[shape] internal error: [batch:2 seq:5 embed:6] has no dim \"ffn\"");
  EXPECT_EQ(error_of("add", {of(kX), {{{"embed", 7}}, kF}}),
            "[add] internal error: [embed:7] and [batch:2 seq:5 embed:6]");
  EXPECT_EQ(
      error_of("contract", {of(kX), {{{"embed", 7}, {"ffn", 8}}, kF}}, {{"dims", "batch seq ffn"}, {"dtype", "fp32"}}),
      "[contract] internal error: [batch:2 seq:5 embed:6] and [embed:7 ffn:8]");
  EXPECT_EQ(error_of("contract", {of(kX), of("embed ffn")}, {{"dims", "batch seq vocab"}, {"dtype", "fp32"}}),
            "[shape] internal error: [embed:6 ffn:8] has no dim \"vocab\"");
  EXPECT_EQ(error_of("sum_squares", {{{{"shard", 2}, {"flat", 1000}}, kF}}),
            "[sum_squares] internal error: [shard:2 flat:1000] is not made of blocks of 1024");
  EXPECT_EQ(error_of("rename", {of(kX)}, {{"from", "ffn"}, {"to", "key_seq"}}),
            "[rename] internal error: [batch:2 seq:5 embed:6] has no dim \"ffn\"");
  EXPECT_EQ(error_of("rename", {of(kX)}, {{"from", "seq"}, {"to", "embed"}}),
            "[shape] internal error: [batch:2 embed:5 embed:6] holds \"embed\" twice");
  EXPECT_EQ(
      error_of("convolution", {of(kImage), of("batch seq")}, kWindows),
      "[convolution] internal error: [batch:2 height:7 width:9 channel:3] and [batch:2 seq:5] with window=\"height "
      "width\" kernel_height=3 stride_height=2 kernel_width=5");
  EXPECT_EQ(error_of("max_pool", {of(kX)}, kWindows),
            "[window] internal error: [batch:2 seq:5 embed:6] has no windows window=\"height width\" kernel_height=3 "
            "stride_height=2 kernel_width=5");
  EXPECT_EQ(error_of("max_pool", {of("batch height channel")}, {{"window", "height"}, {"kernel_height", int64_t{8}}}),
            "[window] internal error: height of 7 with padding 0 and 0 is smaller than a window of 8");
}

// Names in a row exist in its operands, and a family is an operation or "optimizer".
TEST(OpRows, SayOnlyWhatFits) {
  std::set<std::string_view> kinds, dims;
  for (const OpRow& row : operations().rows())
    EXPECT_TRUE(kinds.insert(row.kind).second) << row.kind << " occurs twice";
  for (const OpRow& row : operations().rows()) {
    const std::string_view family = row.rule_family();
    EXPECT_TRUE(family == "optimizer" || (kinds.contains(family) && operations().find(family).family.empty()))
        << row.kind;
    for (std::string_view step : row.steps)
      EXPECT_EQ(std::count(row.whole.begin(), row.whole.end(), step), 1) << row.kind;
    if (row.kind.ends_with("_grad")) {
      const size_t ending = std::string_view(row.kind.ends_with("_with_grad") ? "_with_grad" : "_grad").size();
      EXPECT_EQ(family, row.kind.substr(0, row.kind.size() - ending)) << row.kind;
    }
    EXPECT_FALSE(row.view && row.must_share) << row.kind;
  }
  for (const Case& c : cases()) {
    const OpRow& row = operations().find(c.kind);
    EXPECT_TRUE(!row.effect || c.outs.empty()) << c.kind;
    for (const auto& [out, in] : row.in_place) {
      // A sum's first operand may lack dims of the sum; the memory plan then does not share.
      if (row.kind != "add") {
        EXPECT_EQ(c.outs[row.outs.place(out, c.absent().outs).value()], c.in_types()[in]) << c.kind;
      }
    }
    for (std::string_view d : row.whole) {
      bool has = false;
      for (const Case& other : cases())
        for (const auto* list : {&other.ins, &other.outs})
          for (const Type& t : *list) has |= other.kind == c.kind && t.shape.has(d);
      EXPECT_TRUE(has) << c.kind << " has no " << d;
    }
    if (row.must_share) {
      EXPECT_TRUE(row.may_share(row.outs[0].name, 0)) << c.kind;
    }
  }
}

// Gradient rules: each input's gradient has its dims; weights get theirs in fp32.
TEST(OpRows, GradientsHaveTheDimsOfTheirValues) {
  int checked = 0;
  for (const Case& c : cases()) {
    const OpRow& row = operations().find(c.kind);
    if (!row.grad || c.attributes.text_or("dtype", "") == "bf16") continue;
    graph::StateTable states;
    graph::Graph g("g", operations(), states);
    std::vector<ValueId> ins;
    for (size_t i = 0; i < c.ins.size(); ++i)
      ins.push_back(g.read(states.add({.name = "w" + std::to_string(i), .type = c.ins[i]})));
    ins = tensor::by_position(std::span<const ValueId>(ins), c.absent().ins, kNone);
    const std::vector<ValueId> outs = g.make(c.kind, ins, c.outs, c.attributes);
    std::vector<ValueId> douts;
    for (ValueId o : outs) douts.push_back(g.fill(1.0, g.type(o)));
    const Op op = g.op_at(static_cast<size_t>(g.value(outs[0]).op));
    EXPECT_EQ(op.absent, c.absent()) << c.kind;
    const std::vector<ValueId> dins = row.grad(g, op, douts);
    ASSERT_EQ(dins.size(), ins.size()) << c.kind;
    for (size_t i = 0; i < ins.size(); ++i) {
      // Targets and their weights are inputs, a load is of the step before; whatever depends on x is part of its
      // gradient.
      const std::string_view name = c.row().ins[i].name;
      const bool weighted = c.kind == "class_loss" || c.kind == "weighted_scores" || c.kind == "policy_loss";
      const bool given = name == "targets" || name == "statistics" || name == "reference" || name == "sampled" ||
                         name == "norms" || (name == "weights" && weighted) ||
                         (name == "load" && c.kind == "balance_loss") ||
                         (name == "bias" && c.kind == "route");  // which is moved by the update
      const bool moves = ins[i] != kNone && tensor::is_floating(g.type(ins[i]).dtype) && !given;
      EXPECT_EQ(dins[i] != kNone, moves) << c.kind << " input " << i;
      if (dins[i] != kNone) {
        EXPECT_EQ(g.shape(dins[i]), g.shape(ins[i])) << c.kind << " input " << i;
      }
    }
    ++checked;
  }
  EXPECT_GE(checked, 20);
}

}  // namespace kintsugi::ops::rows_test
