#include "kintsugi/report/html.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "tests/markup.h"

namespace kintsugi::report::html_test {

TEST(Html, TextsAreEscaped) {
  EXPECT_EQ(escape_html("a <b> & \"c\"\n\x01 \xc3\xa9 \xff"), "a &lt;b&gt; &amp; &quot;c&quot;   \xc3\xa9 ?");
  EXPECT_EQ(
      html_table({.align = "lr", .head = {"<k>", "n"}, .rows = {{"a&b", "1"}, {"c"}}, .marked = {false, true}}),
      "<div class=\"scroll\"><table>\n<thead><tr><th>&lt;k&gt;</th><th class=\"r\">n</th></tr>\n</thead>\n<tbody>\n"
      "<tr><td>a&amp;b</td><td class=\"r\">1</td></tr>\n<tr "
      "class=\"marked\"><td>c</td></tr>\n</tbody></table></div>\n");
  EXPECT_EQ(html_lines("a <b>\n\n  c"), "<pre>a &lt;b&gt;\n\n  c\n</pre>\n");
  EXPECT_THROW(html_table({.align = "l", .head = {}, .rows = {{"a", "b"}}}), base::InternalError);
}

TEST(Html, APageIsWhole) {
  const std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\" width=\"9\" height=\"9\"><rect "
      "width=\"9\"/></svg>\n";
  const std::string picture = html_picture(svg, "a < b");
  EXPECT_EQ(
      picture,
      "<figure class=\"picture\"><div class=\"scroll\">\n<svg viewBox=\"0 0 9 9\"><rect width=\"9\"/></svg>\n</div>"
      "<figcaption>a &lt; b</figcaption></figure>\n");
  const std::string page =
      html_page("A <page>", html_section("Se&ction", html_heading("h") + html_paragraph("p") + picture +
                                                         html_details("d", "") + html_lines("x")));
  EXPECT_EQ(tests::markup_fault(page), "");
  EXPECT_NE(page.find("<title>A &lt;page&gt;</title>"), std::string::npos);
}

TEST(Html, TheCheckerOfPagesSeesFaults) {
  const auto fault = [](const std::string& body) { return tests::markup_fault("<!DOCTYPE html>\n" + body); };
  EXPECT_EQ(fault("<a b=\"1\"><meta c=\"2\">t &amp; u<svg><c/></svg></a>\n"), "");
  for (const char* bad : {"<a>",
                          "<a></b>",
                          "<a b=1></a>",
                          "<a b=\"1\" b=\"2\"></a>",
                          "<a></a><b></b>",
                          "<a>&nbsp;</a>",
                          "<a>></a>",
                          "t",
                          "",
                          "<a b=\"1></a>",
                          "<a/>",
                          "<a b></a>",
                          "<a src=\"x\"></a>",
                          "<a onclick=\"x\"></a>",
                          "<a b=\"http://x\"></a>",
                          "<a><script></script></a>",
                          "<a><link></a>",
                          "<a><style>@import x</style></a>",
                          "<a style=\"b:url(x)\"></a>",
                          "<a b=\"&x\"></a>",
                          "<a><style></a>"})
    EXPECT_NE(fault(bad), "") << bad;
  EXPECT_NE(tests::markup_fault("<html></html>"), "");
}

}  // namespace kintsugi::report::html_test
