// The table of strategies says what the programs say.
#include "kintsugi/train/strategies.h"

#include <gtest/gtest.h>

#include "kintsugi/program/communication.h"
#include "tests/layouts.h"

namespace kintsugi::tests {
namespace {

config::Settings model() {
  config::Settings s = small_model("gpt", "fp32");
  s.model.heads = s.model.kv_heads = 4;
  s.train.sequence = 16;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  return s;
}

std::vector<std::string> names(const std::vector<train::Strategy>& list) {
  std::vector<std::string> names;
  for (const train::Strategy& s : list) names.push_back(s.name);
  return names;
}

void expect_as_lowered(const train::Strategy& row, const std::string& layout, int64_t micro_batch) {
  config::Settings s = model();
  set_layout(s, layout);
  s.train.micro_batch = micro_batch;
  const program::Program p = train::build_program(s, *train::kernels_of(s));
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
  EXPECT_EQ(row.passes, train::micro_batches(s)) << layout;
}

}  // namespace

TEST(Strategies, AreThoseOfTheirPrograms) {
  const std::vector<train::Strategy> list = train::strategies(model(), 2);
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

// Of stages, the most of each: the first sends what it makes and its share of a tied table, the last has the head.
TEST(Strategies, APipelineIsItsLargestStage) {
  config::Settings s = model();
  const train::Strategy row = train::strategies(s, 2).back();
  EXPECT_EQ(row.splits, "layer");
  s.parallel.pipe = s.parallel.ranks = 2;
  s.train.micro_batch = 4;
  double flops = 0, sent = 0;
  int64_t bytes = 0;
  for (const program::Program& p : train::build_programs(s, *train::kernels_of(s))) {
    double mine = 0;
    for (const program::Traffic& t : program::traffic(p, program::Step::train)) mine += t.total();
    flops = std::max(flops, p.flops(program::Step::train));
    sent = std::max(sent, mine);
    bytes = std::max(bytes, p.bytes());
  }
  EXPECT_EQ(row.flops, flops);
  EXPECT_EQ(row.sent, sent);
  EXPECT_EQ(row.bytes(), bytes);
  EXPECT_EQ(train::strategies(s, 8).back().refused.substr(0, 8), "[stages]");
}

TEST(Strategies, TheUsersOwnPlanIsTheLastRow) {
  config::Settings s = model();
  set_layout(s, "data=2 tensor=2 zero=2");
  s.train.micro_batch = 2;
  const std::vector<train::Strategy> list = train::strategies(s, 4);
  EXPECT_EQ(list.back().name, "this plan");
  EXPECT_EQ(list.back().splits, "batch, kv_heads, group, ffn, vocab; flat of optimizer, gradient");
  expect_as_lowered(list.back(), "data=2 tensor=2 zero=2", 2);
  expect_as_lowered(list[1], "data=4", 1);
  EXPECT_EQ(train::strategies(s, 2).back().name, "pipeline");
}

TEST(Strategies, WhatTheModelCannotTakeSaysWhy) {
  config::Settings s = model();
  s.train.global_batch = s.train.micro_batch = 12;
  const std::vector<train::Strategy> list = train::strategies(s, 8);
  EXPECT_EQ(list[1].refused, "[plan] global_batch 12 is not divisible by mesh axis \"data\" of size 8");
  EXPECT_EQ(
      list[5].refused,
      "[plan] dim \"kv_heads\" of size 4, with \"group\" of size 1, is smaller than mesh axis \"tensor\" of size 8; "
      "nearest kv_heads: 8; nearest tensor: 4");
  EXPECT_EQ(list[7].refused, "");
  s.train.reproducible = 4;
  s.train.global_batch = 8;
  s.train.micro_batch = 2;
  EXPECT_EQ(train::strategies(s, 8)[1].refused,
            "[plan] reproducible 4 is not divisible by mesh axis \"data\" of size 8");
  EXPECT_EQ(train::strategies(s, 4)[1].passes, 1);
}

TEST(Strategies, AsText) {
  const std::vector<train::Strategy> list = {
      {.name = "one rank",
       .splits = "nothing",
       .refused = {},
       .passes = 2,
       .states = 6 << 20,
       .arena = 2 << 20,
       .flops = 1e9},
      {.name = "data",
       .splits = "batch",
       .refused = {},
       .passes = 1,
       .calls = 12,
       .sent = 1 << 20,
       .states = 4 << 20,
       .arena = 2 << 20,
       .flops = 2.6e8},
      {.name = "tensor", .splits = "kv_heads, ffn", .refused = "[plan] no"},
  };
  EXPECT_EQ(train::print(list, 4),
            "strategies for 4 ranks: what each rank sends in a step, holds, and computes\n"
            "  strategy  what is split  passes   calls      sent    states     arena    memory   saves    work\n"
            "  one rank  nothing             2       0       0 B   6.0 MiB   2.0 MiB   8.0 MiB      0%  100.0%\n"
            "  data      batch               1      12   1.0 MiB   4.0 MiB   2.0 MiB   6.0 MiB     25%   26.0%\n"
            "  tensor    kv_heads, ffn  [plan] no\n");
}

}  // namespace kintsugi::tests
