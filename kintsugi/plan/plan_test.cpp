#include "kintsugi/plan/plan.h"

#include <gtest/gtest.h>

namespace kintsugi::plan::plan_test {
namespace {

std::string printed(const config::Parallel& parallel) {
  return print(plan_from(parallel));
}

}  // namespace

TEST(Plan, OfOneRank) {
  const Plan plan = plan_from({});
  EXPECT_EQ(plan.mesh.ranks(), 1);
  EXPECT_EQ(print(plan), "plan: 1 rank\n");
  for (const char* axis : {"data", "context", "tensor"}) EXPECT_TRUE(plan.mesh.has(axis)) << axis;
  // An axis with nothing to split has no rule.
  EXPECT_EQ(printed({.zero = 3, .shard_context = true, .sequence_parallel = true, .context_method = "ring"}),
            "plan: 1 rank\n");
}

TEST(Plan, Zero) {
  EXPECT_EQ(printed({.data = 4}), "plan: 4 ranks, mesh data=4\n  batch -> data\n");
  EXPECT_EQ(printed({.data = 4, .zero = 1}),
            "plan: 4 ranks, mesh data=4\n  batch -> data\n  flat in optimizer -> data\n");
  EXPECT_EQ(printed({.data = 4, .zero = 2}),
            "plan: 4 ranks, mesh data=4\n  batch -> data\n  flat in optimizer -> data\n  flat in gradient -> data\n");
  EXPECT_EQ(printed({.data = 4, .zero = 3, .wire = "bf16"}),
            "plan: 4 ranks, mesh data=4, gradients travel in bf16\n"
            "  batch -> data\n"
            "  flat in optimizer -> data\n"
            "  flat in gradient -> data\n"
            "  flat in weight -> data\n");
}

// Groups are of adjacent ranks: the inner factors of the axis.
TEST(Plan, ShardGroups) {
  const auto shards = [](int64_t data, int64_t group) {
    return plan_from({.data = data, .zero = 1, .shard_group = group}).rules.back().axes;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(shards(8, 0), Names{"data"});
  EXPECT_EQ(shards(8, 8), Names{"data"});
  EXPECT_EQ(shards(8, 4), (Names{"data.1", "data.2"}));
  EXPECT_EQ(shards(8, 2), Names{"data.2"});
  EXPECT_EQ(shards(6, 3), Names{"data.1"});
  EXPECT_EQ(shards(6, 2), Names{"data.0"});
  EXPECT_EQ(shards(12, 6), (Names{"data.1", "data.2"}));
  EXPECT_EQ(shards(12, 4), (Names{"data.0", "data.1"}));
  // A group of one shares nothing.
  EXPECT_EQ(printed({.data = 2, .zero = 3, .shard_group = 1}), "plan: 2 ranks, mesh data=2\n  batch -> data\n");
}

TEST(Plan, ShardOverContext) {
  EXPECT_EQ(printed({.data = 4, .context = 2, .zero = 1, .shard_group = 2, .shard_context = true}),
            "plan: 8 ranks, mesh data=4 context=2, seq and key_seq zigzag over context\n"
            "  batch -> data\n"
            "  seq -> context, padded\n"
            "  expert -> context\n"
            "  slot -> context, padded\n"
            "  flat in optimizer -> data.1 context\n");
  EXPECT_EQ(printed({.context = 2, .zero = 1, .shard_context = true}),
            "plan: 2 ranks, mesh context=2, seq and key_seq zigzag over context\n"
            "  seq -> context, padded\n"
            "  expert -> context\n"
            "  slot -> context, padded\n"
            "  flat in optimizer -> context\n");
}

TEST(Plan, Tensor) {
  const std::string rules =
      "  kv_heads -> tensor\n"
      "  group -> tensor\n"
      "  kv_heads -> tensor, padded\n"
      "  ffn -> tensor, padded\n"
      "  vocab -> tensor, padded\n"
      "  filter -> tensor, padded\n";
  EXPECT_EQ(printed({.tensor = 2}), "plan: 2 ranks, mesh tensor=2\n" + rules);
  EXPECT_EQ(printed({.tensor = 2, .sequence_parallel = true, .keep_gathered = true, .allow_repeat = true}),
            "plan: 2 ranks, mesh tensor=2, gathered activations kept, repeated work allowed\n" + rules +
                "  seq -> tensor, padded\n");
}

TEST(Plan, Context) {
  const std::string zigzag = "plan: 2 ranks, mesh context=2, seq and key_seq zigzag over context\n";
  const std::string contiguous = "plan: 2 ranks, mesh context=2\n";
  const std::string heads = "  kv_heads in attention -> context\n  group in attention -> context\n";
  const std::string ring = "  key_seq in attention -> context, padded, in steps\n";
  const std::string seq = "  seq -> context, padded\n  expert -> context\n  slot -> context, padded\n";
  EXPECT_EQ(printed({.context = 2}), zigzag + seq);
  EXPECT_EQ(printed({.context = 2, .context_balance = "contiguous"}), contiguous + seq);
  EXPECT_EQ(printed({.context = 2, .context_method = "ring"}), zigzag + ring + seq);
  EXPECT_EQ(printed({.context = 2, .context_method = "ulysses"}), contiguous + heads + seq);
  EXPECT_EQ(printed({.context = 2, .context_method = "ulysses", .context_balance = "zigzag"}), zigzag + heads + seq);
}

// Everything, with the user's rules first and a mesh order.
TEST(Plan, Everything) {
  const Plan plan = plan_from({.data = 2,
                               .tensor = 2,
                               .context = 3,
                               .zero = 1,
                               .sequence_parallel = true,
                               .context_method = "ring",
                               .rules = {"embed in contract -> tensor , padded", "vocab->data"},
                               .mesh_order = "tensor data context"});
  EXPECT_EQ(print(plan),
            "plan: 12 ranks, mesh tensor=2 data=2 context=3, seq and key_seq zigzag over context\n"
            "  embed in contract -> tensor, padded\n"
            "  vocab -> data\n"
            "  batch -> data\n"
            "  kv_heads -> tensor\n"
            "  group -> tensor\n"
            "  kv_heads -> tensor, padded\n"
            "  ffn -> tensor, padded\n"
            "  vocab -> tensor, padded\n"
            "  filter -> tensor, padded\n"
            "  key_seq in attention -> context, padded, in steps\n"
            "  seq -> context, padded\n"
            "  expert -> context\n"
            "  slot -> context, padded\n"
            "  seq -> tensor, padded\n"
            "  flat in optimizer -> data\n");
  EXPECT_EQ(plan.mesh.group(0, plan.mesh.expand(std::vector<std::string>{"tensor"})), (std::vector<int>{0, 6}));
}

}  // namespace kintsugi::plan::plan_test
