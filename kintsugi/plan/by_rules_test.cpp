#include "kintsugi/plan/by_rules.h"

#include <gtest/gtest.h>

#include <string>

namespace kintsugi::plan::by_rules_test {
namespace {

using Dims = std::vector<tensor::Dim>;

// "group/tensor.1 kv_heads/tensor.0"
std::string splits(const Plan& plan, std::string_view family, const Dims& dims, std::vector<mesh::Factor> taken = {}) {
  std::string text;
  for (const auto& [dim, factors] : by_rules(plan, family, dims, taken))
    text += (text.empty() ? "" : ", ") + dim + "/" + plan.mesh.name_of(factors);
  return text;
}

}  // namespace

TEST(ByRules, HeadsShareAnAxis) {
  const Plan plan = plan_from({.tensor = 4});
  const auto heads = [&](int64_t kv_heads, int64_t group) {
    return splits(plan, "attention", {{"kv_heads", kv_heads}, {"group", group}});
  };
  EXPECT_EQ(heads(4, 1), "kv_heads/tensor");
  EXPECT_EQ(heads(2, 2), "group/tensor.1, kv_heads/tensor.0");
  EXPECT_EQ(heads(1, 4), "group/tensor");
  EXPECT_EQ(heads(3, 2), "group/tensor.0, kv_heads/tensor.1");  // what divides comes before what is padded
  EXPECT_EQ(heads(5, 1), "kv_heads/tensor");
  EXPECT_EQ(heads(2, 1), "kv_heads/tensor.0");
  EXPECT_EQ(heads(1, 1), "");
}

TEST(ByRules, TheFirstThatFits) {
  const Plan plan = plan_from({.tensor = 2, .context = 2, .sequence_parallel = true, .context_method = "ulysses"});
  EXPECT_EQ(splits(plan, "add", {{"batch", 8}, {"seq", 8}, {"embed", 6}}), "seq/context tensor");
  EXPECT_EQ(splits(plan, "contract", {{"seq", 8}, {"embed", 6}, {"ffn", 7}}), "ffn/tensor, seq/context");
  EXPECT_EQ(splits(plan, "contract", {{"seq", 8}, {"kv_heads", 4}}), "kv_heads/tensor, seq/context");
  EXPECT_EQ(splits(plan, "attention", {{"seq", 8}, {"kv_heads", 4}}), "kv_heads/tensor context");
  EXPECT_EQ(splits(plan, "attention", {{"seq", 8}, {"kv_heads", 2}}), "kv_heads/tensor, seq/context");
  EXPECT_EQ(splits(plan, "attention", {{"seq", 8}, {"kv_heads", 4}}, {0}), "kv_heads/tensor");  // context is taken
}

// A zigzag cut has two chunks per part: 6 positions on 2 ranks are padded, 2 do not fit.
TEST(ByRules, Zigzag) {
  const Plan plan = plan_from({.context = 2});
  EXPECT_EQ(splits(plan, "add", {{"seq", 8}}), "seq/context");
  EXPECT_EQ(splits(plan, "add", {{"seq", 6}}), "seq/context");
  EXPECT_EQ(splits(plan, "add", {{"seq", 2}}), "");
  EXPECT_EQ(splits(plan_from({.context = 2, .rules = {"seq -> context"}}), "add", {{"seq", 6}}), "seq/context");
  Plan unpadded = plan;
  unpadded.rules = {{.dim = "seq", .axes = {"context"}}};
  EXPECT_EQ(splits(unpadded, "add", {{"seq", 6}}), "");
}

TEST(ByRules, Families) {
  const Plan plan = plan_from({.data = 4, .zero = 1, .shard_group = 2});
  const Dims dims = {{"batch", 8}, {"flat", 1024}};
  EXPECT_EQ(splits(plan, "optimizer", dims), "batch/data");
  EXPECT_EQ(splits(plan, "optimizer", {{"flat", 1024}}), "flat/data.1");
  EXPECT_EQ(splits(plan, "weight", {{"flat", 1024}}), "");
}

}  // namespace kintsugi::plan::by_rules_test
