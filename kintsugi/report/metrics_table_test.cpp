#include "kintsugi/report/metrics_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace kintsugi::report::metrics_table_test {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

TEST(MetricsTable, EachKeyIsAMeasure) {
  const MetricsTable table = parse_metrics(
      "{\"step\":1,\"loss\":5.5,\"norm\":-2e-3}\n"
      "{\"step\":2,\"loss\":5.25,\"validation_loss\":6,\"norm\":null}\n"
      "{ \"norm\": 1.5, \"kind\": \"a\\nb\", \"sizes\": [1, 2], \"step\": 5, \"loss\": 5 }\n");
  EXPECT_EQ(table.num_steps, 3);
  EXPECT_EQ(table.first_step, 1);
  EXPECT_EQ(table.last_step, 5);
  EXPECT_EQ(table.left_out, Texts{});
  EXPECT_EQ(table.measures.size(), 3u);
  EXPECT_EQ(table.measure("loss").steps, (Numbers{1, 2, 5}));
  EXPECT_EQ(table.measure("loss").values, (Numbers{5.5, 5.25, 5}));
  EXPECT_EQ(table.measure("validation_loss").steps, (Numbers{2}));
  EXPECT_EQ(table.measure("norm").steps, (Numbers{1, 2, 5}));
  EXPECT_EQ(table.measure("norm").values[0], -2e-3);
  EXPECT_TRUE(std::isnan(table.measure("norm").values[1]));
  EXPECT_EQ(table.measure("norm").num_not_finite(), 1);
  EXPECT_EQ(table.measure("loss").num_not_finite(), 0);
  EXPECT_TRUE(table.measure("speed").values.empty());
}

TEST(MetricsTable, WhatCannotBeUsedIsLeftOutAndTold) {
  EXPECT_EQ(parse_metrics("").num_steps, 0);
  const std::string whole = "{\"step\":1,\"loss\":5.5}\n";
  EXPECT_EQ(parse_metrics(whole + "{\"step\":2,\"lo").left_out,
            Texts{"line 2 is incomplete: not an object with a step"});
  // An unterminated last line is complete if it is an object.
  EXPECT_EQ(parse_metrics(whole + "{\"step\":2}").num_steps, 2);
  for (const char* bad :
       {"{}", "[]", "7", "{\"step\":2.5}", "{\"step\":-1}", "{\"step\":null}", "{\"step\":1e300}", "{\"step\":2,}",
        "{\"step\":02}", "{\"step\":2,\"loss\":NaN}", "{\"step\":2,\"loss\":nan}", "{\"step\":2,\"loss\":.5}",
        "{\"step\":2,\"loss\":1e999}", "{\"step\":\"2\"}", "{\"step\":2}}", "{\"step\":2", "{\"loss\":2}", "\xff"}) {
    const MetricsTable table = parse_metrics(whole + bad + "\n");
    EXPECT_EQ(table.num_steps, 1) << bad;
    EXPECT_EQ(table.left_out, Texts{"line 2 is incomplete: not an object with a step"}) << bad;
  }
  EXPECT_EQ(parse_metrics(whole + "x\n" + "y\n" + whole + "{\"step\":3}\n").left_out,
            (Texts{"2 lines are incomplete: not objects with a step, the first is line 2",
                   "line 4 has a step that does not follow the one before it"}));
}

TEST(MetricsTable, TokensOfExperts) {
  const MetricsTable table = parse_metrics(
      "{\"step\":1,\"expert_tokens\":[6,2,4]}\n{\"step\":2,\"expert_tokens\":[0,0,0]}\n{\"step\":3,\"loss\":1}\n"
      "{\"step\":4,\"expert_tokens\":[1,8,0]}\n");
  EXPECT_EQ(table.expert_tokens, (std::vector<double>{1, 8, 0}));
  EXPECT_EQ(table.measure(kMostLoaded).steps, (std::vector<double>{1, 4}));  // in step 2 there are none
  EXPECT_EQ(table.measure(kMostLoaded).values, (std::vector<double>{1.5, 8.0 / 3}));
  EXPECT_EQ(table.measure(kLeastLoaded).values, (std::vector<double>{0.5, 0}));
}

TEST(MetricsTable, TextsOfTheModel) {
  const MetricsTable table = parse_metrics(
      "{\"step\":1,\"loss\":5.5}\n"
      "{\"step\":2,\"loss\":5,\"samples\":[{\"prompt\":\"Once\",\"text\":\" "
      "upon\\na\"},{\"prompt\":\"\",\"text\":\"b\"}]}\n"
      "{\"step\":3,\"loss\":4,\"samples\":[{\"prompt\":7}]}\n"
      "{\"step\":4,\"loss\":3,\"samples\":[]}\n");
  ASSERT_EQ(table.texts.size(), 2u);
  EXPECT_EQ(table.texts[0].step, 2);
  EXPECT_EQ(table.texts[0].prompt, "Once");
  EXPECT_EQ(table.texts[0].text, " upon\na");
  EXPECT_EQ(table.texts[1].text, "b");
  EXPECT_EQ(table.measure("loss").values, (Numbers{5.5, 5, 3}));
  EXPECT_EQ(table.left_out, Texts{"line 3 is incomplete: not an object with a step"});
}

// A file read in arbitrary pieces gives the same as read whole.
TEST(MetricsTable, AFileThatGrows) {
  const std::string file = "{\"step\":1,\"loss\":5.5}\n{\"step\":2,\"loss\":5}\n{\"step\":4,\"loss\":3}\n";
  for (size_t first = 0; first <= file.size(); ++first)
    for (size_t second = first; second <= file.size(); ++second) {
      MetricsReader reader;
      reader.add(std::string_view(file).substr(0, first));
      EXPECT_EQ(reader.table().num_steps, std::count(file.begin(), file.begin() + static_cast<long>(first), '\n'));
      reader.add(std::string_view(file).substr(first, second - first));
      reader.add(std::string_view(file).substr(second));
      EXPECT_EQ(reader.table().measure("loss").values, (Numbers{5.5, 5, 3}));
      EXPECT_FALSE(reader.went_back());
    }
  MetricsReader reader;
  reader.add(file + "{\"step\":4,\"loss\":2}\n");
  EXPECT_TRUE(reader.went_back());
}

}  // namespace kintsugi::report::metrics_table_test
