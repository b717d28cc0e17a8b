// An axis of the mesh needs one row, here in this file.
#include <gtest/gtest.h>

#include "kintsugi/compile/programs.h"
#include "kintsugi/models/step.h"
#include "kintsugi/plan/check_plan.h"
#include "tests/layouts.h"

namespace kintsugi::tests::seams_axis_test {
namespace {

// Two ranks split the columns of the feed-forward layer; its nearness is between those of tensor and context.
const plan::AxisRow kColumns = {
    .axis = {.name = "columns", .size = [](const config::Parallel&) { return int64_t{2}; }, .nearness = 25},
    .rules = [](const config::Parallel&) {
      return std::vector<plan::Rule>{{.dim = "ffn", .axes = {"columns"}, .pad = true}};
    }};

}  // namespace

TEST(Seams, AnAxisIsARow) {
  config::Settings s = small_model("llama", "fp64");
  std::vector<plan::AxisRow> rows = plan::axis_rows();
  rows.push_back(kColumns);
  s.parallel.tensor = 2;
  const plan::Plan plan = plan::plan_from(s.parallel, rows);
  EXPECT_EQ(plan::print(plan),
            "plan: 4 ranks, mesh columns=2 tensor=2\n"
            "  kv_heads -> tensor\n"
            "  group -> tensor\n"
            "  kv_heads -> tensor, padded\n"
            "  ffn -> tensor, padded\n"
            "  vocab -> tensor, padded\n"
            "  filter -> tensor, padded\n"
            "  ffn -> columns, padded\n");
  plan::check_plan(plan, compile::dims_of(models::build_training(s)));

  config::Settings one = s;
  one.parallel.tensor = 1;
  train::LayoutRun whole(one), split(s, plan);
  EXPECT_EQ(split.ranks(), 4);
  EXPECT_EQ(difference(record(split, s, 2), record(whole, one, 2), 1e-9), "");
}

}  // namespace kintsugi::tests::seams_axis_test
