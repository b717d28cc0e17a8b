#include "kintsugi/plan/axes.h"

#include <gtest/gtest.h>

#include "kintsugi/plan/plan.h"

namespace kintsugi::plan::axes_test {

TEST(Axes, EachAxisOfTheSettingsHasItsRow) {
  std::vector<std::string_view> names, rows;
  for (const config::Axis& axis : config::axes()) names.push_back(axis.name);
  for (const AxisRow& row : axis_rows()) rows.push_back(row.axis.name);
  EXPECT_EQ(rows, names);
}

// An axis that mesh_order omits is placed just outside the first that is nearer.
TEST(Axes, Order) {
  const auto order = [](int nearness, const std::string& mesh_order) {
    std::vector<AxisRow> rows = axis_rows();
    rows.push_back(
        {.axis = {.name = "rows", .size = [](const config::Parallel&) { return int64_t{3}; }, .nearness = nearness}});
    return to_string(plan_from({.data = 2, .tensor = 2, .context = 2, .pipe = 2, .mesh_order = mesh_order}, rows).mesh);
  };
  const std::string all = "pipe data context tensor";
  EXPECT_EQ(order(0, all), "pipe=2 rows=3 data=2 context=2 tensor=2");
  EXPECT_EQ(order(25, all), "pipe=2 data=2 context=2 rows=3 tensor=2");
  EXPECT_EQ(order(40, all), "pipe=2 data=2 context=2 tensor=2 rows=3");
  EXPECT_EQ(order(10, "tensor rows data context"), "pipe=2 tensor=2 rows=3 data=2 context=2");
  EXPECT_EQ(order(10, "tensor data context"), "pipe=2 rows=3 tensor=2 data=2 context=2");
}

}  // namespace kintsugi::plan::axes_test
