#include "kintsugi/plan/plan.h"

#include <gtest/gtest.h>

namespace kintsugi::plan {

TEST(Plan, OfOneRank) {
  const Plan plan = plan_from({});
  EXPECT_EQ(plan.mesh.ranks(), 1);
  EXPECT_EQ(print(plan), "plan: 1 rank, mesh data=1\n  batch -> data\n");
}

TEST(Plan, EveryWordOfARule) {
  const Plan plan = {.mesh = {{{"data", 2}, {"tensor", 4}}},
                     .rules = {{.dim = "batch", .axes = {"data"}, .family = {}},
                               {.dim = "vocab", .axes = {"tensor"}, .family = "head", .pad = true},
                               {.dim = "flat", .axes = {"data", "tensor"}, .family = "optimizer"},
                               {.dim = "key_seq", .axes = {"tensor"}, .family = "attention", .steps = true}}};
  EXPECT_EQ(plan.mesh.ranks(), 8);
  EXPECT_EQ(print(plan),
            "plan: 8 ranks, mesh data=2 tensor=4\n"
            "  batch -> data\n"
            "  vocab in head -> tensor, padded\n"
            "  flat in optimizer -> data tensor\n"
            "  key_seq in attention -> tensor, in steps\n");
}

}  // namespace kintsugi::plan
