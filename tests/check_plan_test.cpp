// Plans checked against the graphs of a GPT and of a Llama.
#include "kintsugi/plan/check_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"

namespace kintsugi::plan::check_plan_test {
namespace {

config::Settings settings_of(const std::string& text) {
  config::Settings s = config::resolve(config::read_text(text, "run.toml", models::catalog()), 1000).settings;
  if (s.model.vocab == 0) s.model.vocab = 64'000'000;
  return s;
}

ModelDims model_of(const std::string& text) {
  return compile::dims_of(models::build_training(settings_of(text)));
}

// embed 128, kv_heads 4, group 1, head_dim 32, ffn 512, seq 256, batch 8 and vocab 64,000,000 unless `text` overrides
// them.
std::string error_in(const std::string& text) {
  try {
    check_plan(plan_from(settings_of(text).parallel), model_of(text));
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string error_of_rule(const std::string& rule) {
  return error_in("parallel = {data = 4, tensor = 2, rules = ['" + rule + "']}\n");
}

}  // namespace

TEST(CheckPlan, WhatFits) {
  EXPECT_EQ(error_in(""), "no error");
  EXPECT_EQ(error_in("parallel = {data = 8, zero = 3, shard_group = 2}\n"), "no error");
  EXPECT_EQ(error_in("parallel = {tensor = 4, sequence_parallel = true}\n"), "no error");
  EXPECT_EQ(error_in("model.kv_heads = 1\nparallel = {tensor = 4}\n"), "no error");  // group takes all of it
  EXPECT_EQ(error_in("model.kv_heads = 2\nparallel = {tensor = 4}\n"), "no error");  // each takes a factor
  EXPECT_EQ(error_in("model.heads = 3\nmodel.embed = 96\nparallel = {tensor = 2}\n"), "no error");  // padded
  EXPECT_EQ(error_in("train.sequence = 7\nparallel = {context = 3, tensor = 2, sequence_parallel = true}\n"),
            "no error");
  for (const char* method : {"gathered", "ring", "ulysses"})
    EXPECT_EQ(error_in("parallel = {context = 4, context_method = '" + std::string(method) + "'}\n"), "no error");
  // More ranks than heads: the remaining factors split seq.
  EXPECT_EQ(error_in("parallel = {context = 8, context_method = 'ulysses'}\n"), "no error");
}

TEST(CheckPlan, ADimSmallerThanItsAxis) {
  EXPECT_EQ(error_in("model.heads = 2\nparallel = {tensor = 4}\n"),
            "[plan] dim \"kv_heads\" of size 2, with \"group\" of size 1, is smaller than mesh axis \"tensor\" of size "
            "4; nearest kv_heads: 4; nearest tensor: 2");
  EXPECT_EQ(error_in("model.heads = 1\nparallel = {tensor = 2}\n"),
            "[plan] dim \"kv_heads\" of size 1, with \"group\" of size 1, is smaller than mesh axis \"tensor\" of size "
            "2; nearest kv_heads: 2; nearest tensor: 1");
  EXPECT_EQ(error_in("model.kv_heads = 2\nparallel = {tensor = 1000000}\n"),
            "[plan] dim \"kv_heads\" of size 2, with \"group\" of size 2, is smaller than mesh axis \"tensor\" of size "
            "1000000; nearest kv_heads: 500000; nearest tensor: 4");
  EXPECT_EQ(error_in("model.heads = 2\nparallel = {tensor = 4, allow_repeat = true}\n"), "no error");
  // Two of three factors fit; a rank with nothing but padding would remain.
  EXPECT_EQ(error_in("model.heads = 3\nmodel.embed = 96\nparallel = {tensor = 4}\n"),
            "[plan] dim \"kv_heads\" of size 3, with \"group\" of size 1, is smaller than mesh axis \"tensor\" of size "
            "4; nearest kv_heads: 4; nearest tensor: 3");
  EXPECT_EQ(error_in("model.heads = 3\nmodel.embed = 96\nparallel = {tensor = 4, allow_repeat = true}\n"), "no error");
  EXPECT_EQ(error_in("model.ffn = 3\nparallel = {tensor = 4}\n"),
            "[plan] dim \"ffn\" of size 3 is smaller than mesh axis \"tensor\" of size 4; nearest ffn: 4; nearest "
            "tensor: 3");
  EXPECT_EQ(error_in("train.sequence = 5\nparallel = {context = 8}\n"),
            "[plan] dim \"seq\" of size 5 is smaller than mesh axis \"context\" of size 8; nearest seq: 8; nearest "
            "context: 5");
  EXPECT_EQ(error_in("train.sequence = 7\nparallel = {context = 2, tensor = 4, sequence_parallel = true}\n"),
            "[plan] dim \"seq\" of size 7 is smaller than mesh axes \"context tensor\" of size 8; nearest seq: 8");
  EXPECT_EQ(error_in("model.embed = 4\nparallel = {data = 8, rules = ['embed in optimizer -> data, padded']}\n"),
            "[plan] dim \"embed\" of size 4 is smaller than mesh axis \"data\" of size 8; nearest embed: 8; nearest "
            "data: 4");
  // Unknown sizes are not compared.
  EXPECT_EQ(error_in("parallel = {tensor = 4}\n"), "no error");
  EXPECT_EQ(error_in("model.vocab = 5\nparallel = {tensor = 4}\n"), "no error");
  EXPECT_EQ(error_in("model.vocab = 3\nparallel = {tensor = 4}\n"),
            "[plan] dim \"vocab\" of size 3 is smaller than mesh axis \"tensor\" of size 4; nearest vocab: 4; nearest "
            "tensor: 3");
}

TEST(CheckPlan, RulesThatFit) {
  for (const char* rule :
       {"embed in contract -> tensor, padded", "vocab in head -> data.1", "position in weight -> data",
        "key_seq in attention -> tensor, padded, in steps", "key_seq -> tensor, in steps", "head_dim -> tensor",
        "head_dim in contract -> tensor", "embed in optimizer -> data", "flat in gradient -> data.0 tensor",
        "batch in cache -> data", "head_dim in optimizer -> tensor"})
    EXPECT_EQ(error_of_rule(rule), "no error") << rule;
}

TEST(CheckPlan, NamesThatAreNot) {
  EXPECT_EQ(error_of_rule("vocab -> tenser"),
            "[plan] rule \"vocab -> tenser\": there is no axis \"tenser\"; there are data (data.0 data.1), context, "
            "tensor");
  EXPECT_EQ(error_of_rule("vocab -> data.2"),
            "[plan] rule \"vocab -> data.2\": there is no axis \"data.2\"; there are data (data.0 data.1), context, "
            "tensor");
  EXPECT_EQ(error_of_rule("vocab -> data data.1"), "[plan] rule \"vocab -> data data.1\" names \"data.1\" twice");
  EXPECT_EQ(error_of_rule("vocabulary -> tensor"),
            "[plan] rule \"vocabulary -> tensor\": there is no dim \"vocabulary\"; there are vocab, embed, position, "
            "batch, seq, kv_heads, group, head_dim, key_seq, ffn, flat");
  EXPECT_EQ(error_of_rule("vocab in matmul -> tensor"),
            "[plan] rule \"vocab in matmul -> tensor\": there is no family \"matmul\"; there are embedding, position, "
            "add, layer_norm, contract, rename, attention, gelu, head, cross_entropy, sum, weight, gradient, "
            "optimizer, cache, statistic");
  EXPECT_EQ(
      error_in("model.family = 'llama'\nparallel = {data = 2, rules = ['position in weight -> data']}\n"),
      "[plan] rule \"position in weight -> data\": there is no dim \"position\"; there are vocab, embed, batch, seq, "
      "kv_heads, group, head_dim, key_seq, ffn, flat");
}

TEST(CheckPlan, Families) {
  const ModelDims model = model_of("");
  const std::vector<std::string_view> list = families(model);
  const auto count = [&](std::string_view name) { return std::count(list.begin(), list.end(), name); };
  for (const char* name : {"contract", "attention", "layer_norm", "head", "embedding", "weight", "gradient",
                           "optimizer", "cache", "statistic"})
    EXPECT_EQ(count(name), 1) << name;
  for (const char* name : {"attention_grad", "state", "accumulate", "output", "adamw", ""})
    EXPECT_EQ(count(name), 0) << name;
}

TEST(CheckPlan, SplitsThatAnOperationCannotTake) {
  EXPECT_EQ(error_of_rule("head_dim in attention -> tensor"),
            "[plan] rule \"head_dim in attention -> tensor\": attention needs \"head_dim\" whole");
  EXPECT_EQ(error_of_rule("embed in head -> tensor, padded"),
            "[plan] rule \"embed in head -> tensor, padded\": head needs \"embed\" whole");
  EXPECT_EQ(error_of_rule("key_seq in attention -> tensor"),
            "[plan] rule \"key_seq in attention -> tensor\": attention takes \"key_seq\" whole or in steps; add \", in "
            "steps\"");
  EXPECT_EQ(error_of_rule("embed in contract -> tensor, in steps"),
            "[plan] rule \"embed in contract -> tensor, in steps\": contract cannot take \"embed\" in steps; attention "
            "can take \"key_seq\"");
  EXPECT_EQ(error_of_rule("seq -> tensor, in steps"),
            "[plan] rule \"seq -> tensor, in steps\": no operation can take \"seq\" in steps; attention can take "
            "\"key_seq\"");
  EXPECT_EQ(error_of_rule("embed in weight -> data, in steps"),
            "[plan] rule \"embed in weight -> data, in steps\": a state is not taken in steps; leave \"in steps\" out");
  EXPECT_EQ(error_of_rule("flat -> data"),
            "[plan] rule \"flat -> data\": flat is all of a bucket of parameters as one dim, which only states have; "
            "write \"flat in weight\", \"flat in gradient\" or \"flat in optimizer\"");
  EXPECT_EQ(error_of_rule("flat in contract -> data"),
            "[plan] rule \"flat in contract -> data\": flat is all of a bucket of parameters as one dim, which only "
            "states have; write \"flat in weight\", \"flat in gradient\" or \"flat in optimizer\"");
}

}  // namespace kintsugi::plan::check_plan_test
