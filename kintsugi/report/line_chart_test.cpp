#include "kintsugi/report/line_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kintsugi/report/html.h"
#include "tests/markup.h"

namespace kintsugi::report::line_chart_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

size_t count(const std::string& text, std::string_view word) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++found;
  return found;
}

void expect_whole(const std::string& chart) {
  EXPECT_EQ(tests::markup_fault(html_page("", chart)), "") << chart;
}

}  // namespace

TEST(LineChart, CurvesAreDrawnWhereTheirValuesAre) {
  const std::string chart =
      html_chart({.heading = "Loss <1>",
                  .note = "of a & b",
                  .curves = {{.name = "a", .colour = 0, .points = {{0, 0}, {5, 5}, {10, 10}}},
                             {.name = "b", .colour = 1, .points = {{0, 5}, {10, 0}}, .dots = true}},
                  .from_zero = true});
  expect_whole(chart);
  // 2000 units wide; 1000 high for 0 to 10.4, with a margin above.
  EXPECT_EQ(count(chart, "<path class=\"c0\" d=\"M0 1000l1000-481 1000-481\"><title>a</title></path>"), 1u) << chart;
  EXPECT_EQ(count(chart, "<path class=\"c1 d1\" d=\"M0 519l2000 481\"><title>b</title></path>"), 1u) << chart;
  EXPECT_EQ(count(chart, "<path class=\"c1 dots\" d=\"M0 519h0m2000 481h0\"></path>"), 1u) << chart;
  EXPECT_EQ(count(chart, "<li>"), 2u);
  EXPECT_EQ(count(chart, "<path class=\"c1 d1\" d=\"M0 5h22\"/>"), 1u) << chart;  // in the legend as on the chart
  EXPECT_EQ(count(chart, "stroke-width"), 0u) << chart;
  EXPECT_EQ(count(chart, "<span class=\"name-x\">step</span>"), 1u) << chart;
  EXPECT_EQ(count(chart, "Loss &lt;1&gt;</h3>"), 1u);
  EXPECT_EQ(count(chart, ">of a &amp; b</p>"), 1u);
  for (const char* tick : {">0<", ">2<", ">4<", ">6<", ">8<", ">10<"}) EXPECT_EQ(count(chart, tick), 2u) << tick;
  EXPECT_EQ(count(chart, "class=\"lost\""), 0u);
}

TEST(LineChart, WhatIsNotFiniteIsAGapWithAMark) {
  const std::string chart =
      html_chart({.heading = "h", .curves = {{.name = "", .points = {{0, 1}, {1, 2}, {2, kNan}, {3, 2}, {4, 1}}}}});
  expect_whole(chart);
  EXPECT_EQ(count(chart, "<path class=\"c0\" d=\"M0 963l500-926m1000 0l500 926\"></path>"), 1u) << chart;
  EXPECT_EQ(count(chart, "<path class=\"lost\" d=\"M1000 0l0 40\"><title>not finite</title></path>"), 1u) << chart;
  EXPECT_EQ(count(chart, "class=\"legend\""), 0u);
  // An isolated point is a dot.
  const std::string dots =
      html_chart({.heading = "h", .curves = {{.name = "", .points = {{0, 1}, {1, kNan}, {2, 2}, {3, 2}, {4, kNan}}}}});
  EXPECT_EQ(count(dots, "d=\"M0 963h0m1000-926l500 0\""), 1u) << dots;
}

TEST(LineChart, WhatIsFarApartIsLogarithms) {
  const auto drawn = [](double high, bool from_zero) {
    return html_chart(
        {.heading = "h", .curves = {{.name = "", .points = {{0, 1}, {1, high}}}}, .from_zero = from_zero});
  };
  EXPECT_EQ(count(drawn(1e4, false), ">100</span>"), 1u);
  EXPECT_EQ(count(drawn(1e4, true), ">100</span>"), 0u);
  EXPECT_EQ(count(drawn(1e4, true), ">2000</span>"), 1u);
  EXPECT_EQ(count(drawn(21, false), ">5</span>"), 1u);
  EXPECT_EQ(count(drawn(21, false), ">15</span>"), 0u);
  EXPECT_EQ(count(drawn(19, false), ">15</span>"), 1u);
}

TEST(LineChart, WhateverTheValues) {
  const double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  for (const std::vector<Point>& points : std::vector<std::vector<Point>>{{},
                                                                          {{1, 1}},
                                                                          {{1, 0}},
                                                                          {{1, kNan}},
                                                                          {{0, -5}, {1, -5}},
                                                                          {{0, kNan}, {1, kNan}},
                                                                          {{0, 1e-300}, {1, 1e300}},
                                                                          {{0, -1e300}, {1, 1e300}},
                                                                          {{0, -most}, {1, most}},
                                                                          {{0, most}, {1, most}},
                                                                          {{0, least}, {1, 0}},
                                                                          {{0, least}, {1, most}},
                                                                          {{0, 5}, {9e15, 5.0000001}}}) {
    const std::string chart = html_chart({.heading = "h", .curves = {{.name = "n", .points = points}}});
    expect_whole(chart);
    EXPECT_EQ(count(chart, "nan"), 0u) << chart;
    EXPECT_EQ(count(chart, "inf"), 0u) << chart;
    EXPECT_LT(chart.size(), 4000u);
  }
}

TEST(LineChart, ColoursBeginAgainDashed) {
  std::vector<Curve> curves;
  for (int i = 0; i < 10; ++i) curves.push_back({.name = "n", .colour = i, .points = {{0, 1}, {1, 2}}});
  const std::string chart = html_chart({.heading = "h", .curves = curves});
  EXPECT_EQ(count(chart, "class=\"c1 d1\""), 2u);  // in the legend and in the plot
  EXPECT_EQ(count(chart, "class=\"c1 d2\""), 2u);
  EXPECT_EQ(count(chart, "class=\"c7 d3\""), 2u);
}

}  // namespace kintsugi::report::line_chart_test
