#include "kintsugi/base/xml.h"

#include <gtest/gtest.h>

namespace kintsugi::base::xml_test {

TEST(Xml, Escapes) {
  EXPECT_EQ(escape_xml(""), "");
  EXPECT_EQ(escape_xml("a<b> & &amp;"), "a&lt;b&gt; &amp; &amp;amp;");
  EXPECT_EQ(escape_xml("\"quotes' stay\""), "\"quotes' stay\"");
  EXPECT_EQ(escape_xml("tab\tline\n\x1b."), "tab line  .");
  EXPECT_EQ(escape_xml("größer 0 \x7f"), "größer 0 \x7f");
}

}  // namespace kintsugi::base::xml_test
