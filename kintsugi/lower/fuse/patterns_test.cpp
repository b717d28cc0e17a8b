#include "kintsugi/lower/fuse/patterns.h"

#include <gtest/gtest.h>

#include <set>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::lower::patterns_test {
namespace {

using kernels::Ability;
using kernels::Kernel;

// find() throws for an operation that does not exist.
TEST(Patterns, NameOperationsAndTheirOperands) {
  const graph::OpTable& table = ops::operations();
  for (const Pattern& pattern : patterns()) {
    for (const std::string_view kind : pattern.consumers) EXPECT_EQ(table.find(kind).kind, kind);
    for (const std::string_view kind : pattern.producers) {
      const graph::OpRow& row = table.find(kind);
      if (!pattern.operand.empty()) {
        EXPECT_TRUE(row.ins[row.ins.position(pattern.operand)].optional) << pattern.operand;
      }
      if (!pattern.output.empty()) {
        EXPECT_TRUE(row.outs[row.outs.position(pattern.output)].optional) << pattern.output;
      }
      for (const std::string_view output : pattern.replaced)
        EXPECT_EQ(std::ranges::count(row.made_together, output), 1) << output;
    }
  }
}

TEST(Patterns, HaveEveryActivationThatKernelsApply) {
  std::set<std::string_view> consumers;
  for (const Pattern& pattern : patterns())
    if (pattern.needs == Capability::epilogue) consumers.insert(pattern.consumers.begin(), pattern.consumers.end());
  EXPECT_EQ(consumers, std::set<std::string_view>(std::begin(kernels::kActivations), std::end(kernels::kActivations)));
}

TEST(Patterns, AskWhatAKernelIsCapableOf) {
  constexpr std::string_view kGelu[] = {"gelu"}, kNorm[] = {"rms_norm"};
  Kernel able = {};
  const Ability abilities[] = {{Capability::epilogue, kGelu},
                               {Capability::follow, kNorm},
                               {Capability::add},
                               {Capability::row_sums},
                               {Capability::columns}};
  able.abilities = abilities;
  const std::vector<std::string_view> also = {"gelu", "add", "sum", "rms_norm", "silu"};
  const auto capable = [&](std::optional<Capability> needs, const Kernel& kernel) {
    std::string all;
    const Pattern pattern = {.rewrite = Rewrite::bias, .needs = needs};
    for (const std::string_view kind : also) all += is_capable(kernel, pattern, kind) ? "1" : "0";
    return all;
  };
  EXPECT_EQ(capable(Capability::epilogue, able), "10000");
  EXPECT_EQ(capable(Capability::follow, able), "00010");
  for (const Capability needs : {Capability::add, Capability::row_sums, Capability::columns}) {
    EXPECT_EQ(capable(needs, able), "11111");
    EXPECT_EQ(capable(needs, Kernel{}), "00000");
  }
  EXPECT_EQ(capable({}, Kernel{}), "11111");
}

TEST(Patterns, AreFoundByTheirProducer) {
  EXPECT_EQ(find_pattern(Rewrite::bias, "contract")->operand, "bias");
  EXPECT_EQ(find_pattern(Rewrite::bias, "rms_norm"), nullptr);
  EXPECT_EQ(find_pattern(Rewrite::row_sums, "layer_norm_grad")->output, "sums");
  EXPECT_NE(find_pattern(Rewrite::launch, "any"), nullptr);
}

}  // namespace
}  // namespace kintsugi::lower::patterns_test
