#include "kintsugi/report/predictions.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "tests/markup.h"

namespace kintsugi::report::predictions_test {
namespace {

Predictions made() {
  return {.checkpoint = "runs/<a>",
          .images = "test.bin",
          .labelled = 5,
          .first = 3,
          .five = 5,
          .counts = {{2, 1}, {1, 1}},
          .samples = {{.label = 0, .best = {{0, 0.75}, {1, 0.25}}, .bitmap = "Qk0="},
                      {.label = 1, .best = {{0, 0.5}}, .bitmap = "Qk0/"},
                      {.label = -1, .best = {{1, 0.5}}, .bitmap = "Qk0+"}}};
}

std::string page_of(const Predictions& p) {
  const std::string html = html_predictions(p);
  EXPECT_EQ(tests::markup_fault("<!DOCTYPE html>\n<html>" + html + "</html>"), "");
  return html;
}

bool has(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

std::string error_of(const std::string& text) {
  try {
    read_predictions("p.json", text);
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST(Predictions, AreAGridAndAMatrix) {
  const std::string html = page_of(made());
  EXPECT_TRUE(has(html, "<p>test.bin, classified by runs/&lt;a&gt;: top-1 60.00%, top-5 100.00% of 5 images.</p>"))
      << html;
  EXPECT_TRUE(has(html, "<figure><img alt=\"\" src=\"data:image/bmp;base64,Qk0=\"><figcaption>0 (75%)</figcaption>"));
  EXPECT_TRUE(has(html,
                  "<figure class=\"wrong\"><img alt=\"\" src=\"data:image/bmp;base64,Qk0/\"><figcaption>0 (50%), "
                  "label 1</figcaption>"));
  EXPECT_TRUE(has(html, "base64,Qk0+\"><figcaption>1 (50%)</figcaption>"));
  EXPECT_TRUE(has(html,
                  "<tr><td class=\"r\">0</td><td class=\"r\">2</td><td class=\"r\">1</td><td "
                  "class=\"r\">66.67%</td></tr>"));
}

TEST(Predictions, OfManyClassesAreTheMostFrequentConfusions) {
  Predictions p = made();
  p.counts.assign(100, std::vector<int64_t>(100, 0));
  p.counts[7][9] = 3;
  p.counts[2][1] = 40;
  const std::string html = page_of(p);
  EXPECT_TRUE(has(html, "<h3>Most frequent confusions</h3>"));
  EXPECT_TRUE(has(html,
                  "<th class=\"r\">images</th></tr>\n</thead>\n<tbody>\n<tr><td class=\"r\">2</td><td "
                  "class=\"r\">1</td><td class=\"r\">40</td></tr>\n<tr><td class=\"r\">7</td>"))
      << html;
}

TEST(Predictions, AreReadAsTheyWereWritten) {
  const Predictions p = made();
  const std::string text = write_predictions(p);
  EXPECT_EQ(write_predictions(read_predictions("p.json", text)), text);
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    return changed.replace(changed.find(from), from.size(), to);
  };
  EXPECT_EQ(error_of(with("Qk0=", "<b>")),
            "[report] \"p.json\":1: \"samples[0].bitmap\" is \"<b>\"; it should be base64");
  EXPECT_EQ(error_of(with("[2,1]", "[2]")),
            "[report] \"p.json\":1: \"counts[0]\" is a list; it should be a list with a number for each class");
  EXPECT_NE(error_of(with("\"five\":5", "\"five\":6")), "");
  EXPECT_NE(error_of(text.substr(0, text.size() / 2)), "");
}

}  // namespace kintsugi::report::predictions_test
