#include "kintsugi/plan/strategies.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace kintsugi::plan::strategies_test {

TEST(Strategies, EachByItsNameAndWhatItSplits) {
  std::vector<std::string> rows;
  for (const Strategy& s : strategies()) {
    const config::Parallel p = parallel_of(s, 4);
    rows.push_back(fmt::format("{}, {} ranks: {}", s.name, p.ranks, splits_of(plan_from(p))));
  }
  EXPECT_EQ(rows, (std::vector<std::string>{
                      "one rank, 1 ranks: nothing", "data, 4 ranks: batch", "zero 1, 4 ranks: batch; flat of optimizer",
                      "zero 2, 4 ranks: batch; flat of optimizer, gradient",
                      "zero 3, 4 ranks: batch; flat of optimizer, gradient, weight",
                      "tensor, 4 ranks: kv_heads, group, ffn, vocab, filter",
                      "tensor, sequence, 4 ranks: kv_heads, group, ffn, vocab, filter, seq",
                      "context, gathered, 4 ranks: seq, expert, slot",
                      "context, ring, 4 ranks: key_seq in attention, seq, expert, slot",
                      "context, ulysses, 4 ranks: kv_heads in attention, group in attention, seq, expert, slot",
                      "pipeline, 4 ranks: layer"}));
}

TEST(Strategies, WhatThePlanOfSeveralSplits) {
  const config::Parallel p = {.data = 2, .tensor = 2, .zero = 2};
  EXPECT_EQ(splits_of(plan_from(p)), "batch, kv_heads, group, ffn, vocab, filter; flat of optimizer, gradient");
  EXPECT_EQ(splits_of(plan_from({.pipe = 2, .zero = 1})), "layer");
  const ModelDims dense = {.dims = {{"batch", 4}, {"kv_heads", 2}, {"ffn", 8}}, .operations = {}, .places = {}};
  EXPECT_EQ(splits_of(plan_from(p), &dense), "batch, kv_heads, ffn; flat of optimizer, gradient");
}

}  // namespace kintsugi::plan::strategies_test
