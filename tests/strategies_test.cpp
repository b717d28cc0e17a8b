// The table of strategies agrees with the programs.
#include <gtest/gtest.h>

#include <algorithm>

#include "kintsugi/compile/programs.h"
#include "kintsugi/compile/strategy_costs.h"
#include "kintsugi/program/communication.h"
#include "tests/layouts.h"

namespace kintsugi::tests::strategies_test {
namespace {

config::Settings model() {
  config::Settings s = small_model("gpt", "fp32");
  s.model.heads = s.model.kv_heads = 4;
  s.train.sequence = 16;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  return s;
}

std::vector<std::string> names(const std::vector<compile::StrategyCosts>& list) {
  std::vector<std::string> names;
  for (const compile::StrategyCosts& s : list) names.push_back(s.name);
  return names;
}

void expect_as_lowered(const compile::StrategyCosts& row, const std::string& layout, int64_t micro_batch) {
  config::Settings s = model();
  set_layout(s, layout);
  s.train.micro_batch = micro_batch;
  const program::Program p = compile::only_stage(compile::compile({.settings = s, .kernels = *compile::kernels_of(s)}));
  double sent = 0;
  int64_t calls = 0;
  for (const program::Traffic& t : program::traffic(p, program::Step::train)) {
    sent += t.total();
    calls += t.calls;
  }
  EXPECT_EQ(row.refused, "");
  EXPECT_EQ(row.sent, sent) << layout;
  EXPECT_EQ(row.calls, calls) << layout;
  EXPECT_EQ(row.states, p.state_bytes) << layout;
  EXPECT_EQ(row.arena, p.arena_bytes) << layout;
  EXPECT_EQ(row.flops, p.flops(program::Step::train)) << layout;
  EXPECT_EQ(row.passes, compile::micro_batches(s)) << layout;
}

}  // namespace

TEST(StrategyCosts, AreThoseOfTheirPrograms) {
  const std::vector<compile::StrategyCosts> list = compile::strategy_costs(model(), 2);
  EXPECT_EQ(names(list),
            (std::vector<std::string>{"one rank", "data", "zero 1", "zero 2", "zero 3", "tensor", "tensor, sequence",
                                      "context, gathered", "context, ring", "context, ulysses", "pipeline"}));
  expect_as_lowered(list[0], "", 4);
  expect_as_lowered(list[1], "data=2", 2);
  expect_as_lowered(list[4], "data=2 zero=3", 2);
  expect_as_lowered(list[6], "tensor=2 sequence_parallel", 4);
  expect_as_lowered(list[8], "context=2 method=ring", 4);
  expect_as_lowered(list[9], "context=2 method=ulysses", 4);
  EXPECT_EQ(list[0].calls, 0);
  EXPECT_EQ(list[0].splits, "nothing");
  EXPECT_EQ(list[4].splits, "batch; flat of optimizer, gradient, weight");
  EXPECT_EQ(list[9].splits, "kv_heads in attention, group in attention, seq");
  EXPECT_LT(list[4].states, list[2].states);
}

// For stages, the maximum of each: the first sends its output and its share of a tied table, the last has the head.
TEST(StrategyCosts, APipelineIsItsLargestStage) {
  config::Settings s = model();
  const compile::StrategyCosts row = compile::strategy_costs(s, 2).back();
  EXPECT_EQ(row.splits, "layer");
  s.parallel.pipe = s.parallel.ranks = 2;
  s.train.micro_batch = 4;
  double flops = 0, sent = 0;
  int64_t bytes = 0;
  for (const program::Program& p : compile::compile({.settings = s, .kernels = *compile::kernels_of(s)})) {
    double mine = 0;
    for (const program::Traffic& t : program::traffic(p, program::Step::train)) mine += t.total();
    flops = std::max(flops, p.flops(program::Step::train));
    sent = std::max(sent, mine);
    bytes = std::max(bytes, p.bytes());
  }
  EXPECT_EQ(row.flops, flops);
  EXPECT_EQ(row.sent, sent);
  EXPECT_EQ(row.bytes(), bytes);
  EXPECT_EQ(compile::strategy_costs(s, 8).back().refused.substr(0, 8), "[stages]");
}

TEST(StrategyCosts, TheUsersOwnPlanIsTheLastRow) {
  config::Settings s = model();
  set_layout(s, "data=2 tensor=2 zero=2");
  s.train.micro_batch = 2;
  const std::vector<compile::StrategyCosts> list = compile::strategy_costs(s, 4);
  EXPECT_EQ(list.back().name, "this plan");
  EXPECT_EQ(list.back().splits, "batch, kv_heads, group, ffn, vocab; flat of optimizer, gradient");
  expect_as_lowered(list.back(), "data=2 tensor=2 zero=2", 2);
  expect_as_lowered(list[1], "data=4", 1);
  EXPECT_EQ(compile::strategy_costs(s, 2).back().name, "pipeline");
}

TEST(StrategyCosts, WhatTheModelCannotTakeSaysWhy) {
  config::Settings s = model();
  s.train.global_batch = s.train.micro_batch = 12;
  const std::vector<compile::StrategyCosts> list = compile::strategy_costs(s, 8);
  EXPECT_EQ(list[1].refused, "[plan] global_batch 12 is not divisible by mesh axis \"data\" of size 8");
  EXPECT_EQ(
      list[5].refused,
      "[plan] dim \"kv_heads\" of size 4, with \"group\" of size 1, is smaller than mesh axis \"tensor\" of size 8; "
      "nearest kv_heads: 8; nearest tensor: 4");
  EXPECT_EQ(list[7].refused, "");
  s.train.reproducible = 4;
  s.train.global_batch = 8;
  s.train.micro_batch = 2;
  EXPECT_EQ(compile::strategy_costs(s, 8)[1].refused,
            "[plan] reproducible 4 is not divisible by mesh axis \"data\" of size 8");
  EXPECT_EQ(compile::strategy_costs(s, 4)[1].passes, 1);
}

}  // namespace kintsugi::tests::strategies_test
