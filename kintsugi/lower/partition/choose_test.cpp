// How an operation is split: the five rules, each with a small operation.
#include "kintsugi/lower/partition/choose.h"

#include <gtest/gtest.h>

#include "kintsugi/lower/pass_test.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::lower::choose_test {
namespace {

using mesh::Mesh;

// Sizes: batch 4, seq 6, key_seq 6, embed 8, ffn 12, kv_heads 2, group 2, head_dim 4, odd 5.
Shape of(const std::string& dims) {
  static const Shape sizes = {{"batch", 4}, {"seq", 6},      {"key_seq", 6},  {"embed", 8}, {"ffn", 12},
                              {"group", 2}, {"kv_heads", 2}, {"head_dim", 4}, {"odd", 5},   {"flat", 4096}};
  std::vector<tensor::Dim> found;
  for (const std::string& name : tensor::words(dims)) found.push_back(sizes[static_cast<size_t>(sizes.find(name))]);
  return Shape(found);
}

struct Case {
  const char* what;
  const char* kind;
  std::vector<const char*> rules;
  std::vector<std::pair<const char*, const char*>> ins;  // dims, and the layout as it stands; "free": free to make
  std::vector<const char*> outs;                         // dims
  const char* chosen;
  tensor::Attributes attributes = {};
};

plan::Plan plan_of(const std::vector<const char*>& rules) {
  plan::Plan plan = {.mesh = Mesh({{.name = "data", .size = 2}, {.name = "tensor", .size = 4}})};
  for (const char* rule : rules) plan.rules.push_back(plan::parse_rule(rule));
  return plan;
}

// "x; w: ffn/tensor -> y: ffn/tensor", whole ones as "whole"; steps in brackets at the end
std::string chosen(const Case& c) {
  const plan::Plan plan = plan_of(c.rules);
  Operation op = {.row = ops::operations().find(c.kind), .attributes = c.attributes, .ins = {}, .outs = {}};
  std::vector<std::optional<Layout>> have;
  for (const auto& [dims, stands] : c.ins) {
    op.ins.push_back(of(dims));
    have.push_back(std::string(stands) == "free" ? std::nullopt : std::optional(layout_of(plan.mesh, stands)));
  }
  for (const char* dims : c.outs) op.outs.push_back(of(dims));
  const Choice choice = choose(op, have, plan);
  std::string text;
  for (const Layout& l : choice.ins) text += (text.empty() ? "" : "; ") + to_string(plan.mesh, l);
  text += " ->";
  for (size_t i = 0; i < choice.outs.size(); ++i) text += (i ? "; " : " ") + to_string(plan.mesh, choice.outs[i]);
  for (const auto& [dim, factors] : choice.steps)
    text += fmt::format(" [{} round {}]", dim, plan.mesh.name_of(factors));
  return text;
}

void expect(const std::vector<Case>& cases) {
  for (const Case& c : cases) EXPECT_EQ(chosen(c), c.chosen) << c.what;
}

const char* kX = "batch seq embed";
const char* kH = "batch seq ffn";

}  // namespace

TEST(Choose, ASumOfPartsIsAPart) {
  expect({
      {"before any rule that would split it",
       "add",
       {"seq -> tensor"},
       {{kX, "sum over tensor"}, {kX, "sum over tensor"}},
       {kX},
       "sum over tensor.0, sum over tensor.1; sum over tensor.0, sum over tensor.1 -> sum over tensor.0, sum over "
       "tensor.1"},
      {"one axis passes, the other splits",
       "add",
       {"batch -> data", "seq -> tensor.0"},
       {{kX, "batch/data, sum over tensor.0"}, {kX, "batch/data, sum over tensor.0"}},
       {kX},
       "batch/data, sum over tensor.0; batch/data, sum over tensor.0 -> batch/data, sum over tensor.0"},
      {"not where an operand is whole: it would be added once per rank",
       "add",
       {},
       {{kX, "sum over tensor"}, {kX, "whole"}},
       {kX},
       "whole; whole -> whole"},
      {"nor where one is free to make",
       "add",
       {},
       {{kX, "sum over tensor"}, {kX, "free"}},
       {kX},
       "whole; whole -> whole"},
      {"nor through what is not additive", "gelu", {}, {{kX, "sum over tensor"}}, {kX}, "whole -> whole"},
      {"nor a maximum", "add", {}, {{kX, "max over tensor"}, {kX, "max over tensor"}}, {kX}, "whole; whole -> whole"},
      {"one factor of an axis",
       "scale",
       {},
       {{kX, "sum over tensor.1"}},
       {kX},
       "sum over tensor.1 -> sum over tensor.1"},
  });
}

TEST(Choose, ARuleOfThePlan) {
  const tensor::Attributes up = {{"dims", "batch seq ffn"}, {"dtype", "fp32"}},
                           down = {{"dims", "batch seq embed"}, {"dtype", "fp32"}};
  expect({
      {"an operand that has the dim is split, one that lacks it whole",
       "contract",
       {"ffn -> tensor"},
       {{kX, "whole"}, {"embed ffn", "whole"}},
       {kH},
       "whole; ffn/tensor -> ffn/tensor",
       up},
      {"an output that lacks it is partial",
       "contract",
       {"ffn -> tensor"},
       {{kH, "ffn/tensor"}, {"ffn embed", "ffn/tensor"}},
       {kX},
       "ffn/tensor; ffn/tensor -> sum over tensor.0, sum over tensor.1",
       down},
      {"each axis by its rule",
       "contract",
       {"batch -> data", "ffn -> tensor"},
       {{kX, "batch/data"}, {"embed ffn", "whole"}},
       {kH},
       "batch/data; ffn/tensor -> batch/data, ffn/tensor",
       up},
      {"the first that fits",
       "contract",
       {"seq -> tensor", "ffn -> tensor"},
       {{kX, "whole"}, {"embed ffn", "whole"}},
       {kH},
       "seq/tensor.0; ffn/tensor.1 -> ffn/tensor.1, seq/tensor.0",
       up},
      {"a rule that pads fits too",
       "contract",
       {"seq -> tensor, padded", "ffn -> tensor"},
       {{kX, "whole"}, {"embed ffn", "whole"}},
       {kH},
       "seq/tensor; whole -> seq/tensor",
       up},
      {"what is left of the axis goes to the next rule",
       "gelu",
       {"odd -> tensor, padded", "seq -> data tensor"},
       {{"seq odd", "whole"}},
       {"seq odd"},
       "odd/tensor, seq/data -> odd/tensor, seq/data"},
      {"only in its family",
       "gelu",
       {"ffn in contract -> tensor", "seq in gelu -> tensor.0"},
       {{kH, "whole"}},
       {kH},
       "seq/tensor.0 -> seq/tensor.0"},
      {"a gradient is of the family of its operation",
       "gelu_grad",
       {"ffn in gelu -> tensor"},
       {{kH, "whole"}, {kH, "whole"}},
       {kH},
       "ffn/tensor; ffn/tensor -> ffn/tensor"},
      {"a dim that the row needs whole has no rule",
       "attention",
       {"head_dim -> tensor", "key_seq -> data"},
       {{"batch seq kv_heads group head_dim", "whole"},
        {"batch key_seq kv_heads head_dim", "whole"},
        {"batch key_seq kv_heads head_dim", "whole"}},
       {"batch seq kv_heads group head_dim", "batch seq kv_heads group"},
       "whole; whole; whole -> whole; whole"},
      {"nor has one that the attributes need whole",
       "layer_norm",
       {"embed -> tensor"},
       {{kX, "whole"}, {"embed", "whole"}},
       {kX},
       "whole; whole -> whole",
       {{"whole", "embed"}}},
      {"before what stands", "gelu", {"seq -> data"}, {{kX, "batch/data"}}, {kX}, "seq/data -> seq/data"},
      {"a statistic has its own combiner",
       "head",
       {"embed -> data", "batch -> data"},
       {{kX, "whole"}, {"ffn embed", "whole"}, {"batch seq", "free"}},
       {"batch seq", "batch seq"},
       "batch/data; whole; batch/data -> batch/data; batch/data"},
      {"and is partial by it",
       "head",
       {"ffn -> data"},
       {{kX, "whole"}, {"ffn embed", "whole"}, {"batch seq", "free"}},
       {"batch seq", "batch seq"},
       "whole; ffn/data; whole -> logsumexp over data; sum over data"},
  });
}

TEST(Choose, WhatStandsStays) {
  expect({
      {"where no rule speaks",
       "gelu",
       {},
       {{kH, "batch/data, ffn/tensor"}},
       {kH},
       "batch/data, ffn/tensor -> batch/data, ffn/tensor"},
      {"an operand without the axis agrees",
       "add",
       {},
       {{kH, "ffn/tensor"}, {kH, "whole"}},
       {kH},
       "ffn/tensor; ffn/tensor -> ffn/tensor"},
      {"so does one that lacks the dim",
       "add",
       {},
       {{kH, "seq/tensor.0"}, {"ffn", "whole"}},
       {kH},
       "seq/tensor.0; whole -> seq/tensor.0"},
      {"two dims of one axis do not",
       "add",
       {},
       {{kH, "seq/tensor.0"}, {kH, "ffn/tensor.0"}},
       {kH},
       "whole; whole -> whole"},
      {"nor a split and a part",
       "add",
       {},
       {{kH, "seq/tensor.0"}, {kH, "sum over tensor.0"}},
       {kH},
       "whole; whole -> whole"},
      {"a dim that must be whole does not stay split",
       "layer_norm",
       {},
       {{kX, "embed/tensor"}, {"embed", "whole"}},
       {kX},
       "whole; whole -> whole",
       {{"whole", "embed"}}},
      {"a split goes through another name",
       "rename",
       {},
       {{kX, "seq/data"}},
       {"batch key_seq embed"},
       "seq/data -> key_seq/data",
       {{"from", "seq"}, {"to", "key_seq"}}},
  });
}

TEST(Choose, AProductPassesOnePart) {
  const tensor::Attributes up = {{"dims", "batch seq ffn"}, {"dtype", "fp32"}};
  expect({
      {"where nothing splits the work",
       "contract",
       {},
       {{kX, "sum over data"}, {"embed ffn", "whole"}},
       {kH},
       "sum over data; whole -> sum over data",
       up},
      {"either operand's",
       "contract",
       {},
       {{kX, "whole"}, {"embed ffn", "sum over data"}},
       {kH},
       "whole; sum over data -> sum over data",
       up},
      {"not two",
       "contract",
       {},
       {{kX, "sum over data"}, {"embed ffn", "sum over data"}},
       {kH},
       "whole; whole -> whole",
       up},
      {"not where the other is split over the axis",
       "contract",
       {},
       {{kX, "sum over data"}, {"embed ffn", "ffn/data"}},
       {kH},
       "whole; whole -> whole",
       up},
      {"not where a rule claims the axis",
       "contract",
       {"ffn -> data"},
       {{kX, "sum over data"}, {"embed ffn", "whole"}},
       {kH},
       "whole; ffn/data -> ffn/data",
       up},
      {"not through what is not linear",
       "gelu_grad",
       {},
       {{kX, "whole"}, {kX, "sum over data"}},
       {kX},
       "whole; whole -> whole"},
  });
}

TEST(Choose, WorkIsRepeated) {
  expect({
      {"where nothing fits",
       "gelu",
       {"odd -> data", "batch -> tensor"},
       {{"seq odd", "whole"}},
       {"seq odd"},
       "whole -> whole"},
  });
}

TEST(Choose, PiecesThatTravel) {
  const std::vector<std::pair<const char*, const char*>> ins = {{"batch seq kv_heads group head_dim", "whole"},
                                                                {"batch key_seq kv_heads head_dim", "whole"},
                                                                {"batch key_seq kv_heads head_dim", "whole"}};
  const std::vector<const char*> outs = {"batch seq kv_heads group head_dim", "batch seq kv_heads group"};
  const char* ring = "key_seq in attention -> data, in steps";
  expect({
      {"round an axis that splits a dim which they lack",
       "attention",
       {ring, "seq -> data"},
       ins,
       outs,
       "seq/data; key_seq/data; key_seq/data -> seq/data; seq/data [key_seq round data]"},
      {"not round one that splits a dim which they have",
       "attention",
       {ring, "batch -> data"},
       ins,
       outs,
       "batch/data; batch/data; batch/data -> batch/data; batch/data"},
      {"nor round one that splits nothing", "attention", {ring}, ins, outs, "whole; whole; whole -> whole; whole"},
      {"nor through what takes no steps", "gelu", {"seq -> data, in steps"}, {{kX, "whole"}}, {kX}, "whole -> whole"},
  });
}

// The blocks of a bucket stay on their ranks, and its flat dim is split by the remaining factors.
TEST(Choose, ShardsOfABucketStay) {
  const plan::Plan plan = plan_of({"flat in optimizer -> tensor data"});
  const graph::OpRow& row = ops::operations().find("sum_squares");
  const Shape bucket = {{"shard", 4}, {"flat", 8192}}, blocks = {{"shard", 4}, {"block", 8}};
  const Operation op = {.row = row, .attributes = {}, .ins = {bucket}, .outs = {blocks}};
  const std::vector<std::optional<Layout>> have = {layout_of(plan.mesh, "shard/tensor")};
  const Choice c = choose(op, have, plan);
  EXPECT_EQ(to_string(plan.mesh, c.ins[0]), "flat/data, shard/tensor");
  EXPECT_EQ(to_string(plan.mesh, c.outs[0]), "block/data, shard/tensor");
}

}  // namespace kintsugi::lower::choose_test
