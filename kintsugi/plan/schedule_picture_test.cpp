#include "kintsugi/plan/schedule_picture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "kintsugi/base/file.h"

namespace kintsugi::plan::schedule_picture_test {
namespace {

size_t count(std::string_view text, std::string_view word) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; at += word.size()) ++found;
  return found;
}

// "" if `text` is one well-formed XML element: tags nest, attributes are quoted and unique, entities are known.
std::string xml_fault(std::string_view text) {
  std::vector<std::string> open;
  size_t at = 0, roots = 0;
  const auto name = [&] {
    const size_t begin = at;
    while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '-')) ++at;
    return std::string(text.substr(begin, at - begin));
  };
  const auto here = [&](std::string_view what) { return fmt::format("{} at \"{}\"", what, text.substr(at, 30)); };
  while (at < text.size()) {
    if (text[at] == '&') {
      const std::string_view rest = text.substr(at);
      if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;")) return here("entity");
      ++at;
    } else if (text[at] == '>') {
      return here("bare >");
    } else if (text[at] != '<') {
      if (open.empty() && text[at] != '\n') return here("text outside");
      ++at;
    } else if (text.substr(at).starts_with("</")) {
      at += 2;
      if (open.empty() || name() != open.back() || text[at++] != '>') return here("wrong end");
      open.pop_back();
    } else {
      ++at;
      if (open.empty() && ++roots > 1) return here("second root");
      open.push_back(name());
      if (open.back().empty()) return here("no name");
      std::vector<std::string> attributes;
      while (at < text.size() && text[at] == ' ') {
        ++at;
        attributes.push_back(name());
        if (count(fmt::format(" {} ", fmt::join(attributes, "  ")), " " + attributes.back() + " ") > 1)
          return here("attribute twice");
        if (!text.substr(at).starts_with("=\"")) return here("attribute");
        at = text.find('"', at + 2);
        if (at == std::string_view::npos) return "open quote";
        ++at;
      }
      if (text.substr(at).starts_with("/>")) {
        open.pop_back();
        at += 2;
      } else if (at < text.size() && text[at] == '>') {
        ++at;
      } else {
        return here("open tag");
      }
    }
  }
  return open.empty() && roots == 1 ? "" : "not closed";
}

std::string svg_of(const Schedule& schedule, const Costs& costs = {}, size_t most = 10'000) {
  return svg_picture(schedule, timeline(schedule, costs), "units", most);
}

}  // namespace

TEST(SchedulePicture, Text) {
  EXPECT_EQ(text_picture(make_schedule("1f1b", 2, 1, 3)),
            "1f1b: 2 stages, 3 micro-batches; 12 units, bubble 33.3%\n"
            "stage 0 |F0F1. . B0==F2B1==. B2==\n"
            "stage 1 |. F0B0==F1B1==F2B2==. .\n");
  EXPECT_EQ(text_picture(make_schedule("zero_bubble", 2, 1, 3)),
            "zero_bubble: 2 stages, 3 micro-batches; 10 units, bubble 11.1%\n"
            "stage 0 |F0F1. B0W0F2B1W1B2W2\n"
            "stage 1 |. F0B0F1B1W0F2B2W1W2\n");
  EXPECT_EQ(text_picture(make_schedule("interleaved", 2, 2, 2)),
            "interleaved: 2 stages, 2 chunks on each, 2 micro-batches; 15 units, bubble 25%\n"
            "stage 0 chunk 0 |F0F1    . .     .     B0==B1==\n"
            "stage 0 chunk 2 |    F0F1. . B0==. B1==\n"
            "stage 1 chunk 1 |. F0F1            B0==B1==. .\n"
            "stage 1 chunk 3 |.     F0B0==F1B1==        . .\n");
  EXPECT_EQ(text_picture(make_schedule("gpipe", 1, 1, 1)),
            "gpipe: 1 stage, 1 micro-batch; 3 units, bubble 0%\n"
            "stage 0 |F0B0==\n");
}

TEST(SchedulePicture, TextIsCutAtItsWidth) {
  const Schedule s = make_schedule("1f1b", 2, 1, 12);
  EXPECT_EQ(text_picture(s, 30),
            "1f1b: 2 stages, 12 micro-batches; 39 units, bubble 8.33%\n"
            "stage 0 |F0 F1 .  .  B0 ===F2\n"
            "stage 1 |.  F0 B0 ===F1 B1 ===\n"
            "the first 7 of 39 units\n");
  for (int width : {9, 12, 57, 100, 125, 126, 200}) {
    std::istringstream lines(text_picture(s, width));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line))
      if (line.starts_with("stage")) {
        EXPECT_LE(line.size(), static_cast<size_t>(std::max(width, 9 + 3))) << line;
      }
  }
  EXPECT_EQ(count(text_picture(s, 126), "the first"), 0u);
  EXPECT_EQ(count(text_picture(s, 125), "the first 38 of 39 units"), 1u);
  for (int width : {-5, 0, 5}) EXPECT_EQ(count(text_picture(s, width), "the first 1 of 39 units"), 1u);
}

TEST(SchedulePicture, SvgHasARectangleForEachTask) {
  for (std::string_view name : schedule_names())
    for (int stages : {1, 4})
      for (int64_t micro_batches : {4, 40}) {
        const Schedule s = make_schedule(name, stages, name == "interleaved" ? 3 : 1, micro_batches);
        const std::string svg = svg_of(s, {0.25, 0.5, 0.125});
        SCOPED_TRACE(svg.substr(0, 400));
        EXPECT_EQ(xml_fault(svg), "");
        EXPECT_EQ(count(svg, "<rect "), static_cast<size_t>((s.split ? 3 : 2) * s.all_chunks() * micro_batches));
        EXPECT_EQ(count(svg, "width=\"1000\""), 1u);
        EXPECT_EQ(count(svg, ">weight gradient</text>"), s.split ? 1u : 0u);
        EXPECT_EQ(count(svg, "darker"), s.chunks > 1 ? 1u : 0u);
        for (int stage = 0; stage < stages; ++stage) EXPECT_EQ(count(svg, fmt::format(">stage {}</text>", stage)), 1u);
      }
}

TEST(SchedulePicture, SvgShowsWhatIsWhenWhere) {
  const std::string svg = svg_of(make_schedule("zero_bubble", 2, 1, 2));
  EXPECT_EQ(count(svg, ">zero_bubble: 2 stages, 2 micro-batches; 7 units, bubble 16.7%</text>"), 1u);
  // 914 px for 7 units start at 72; rows are 30 px apart.
  EXPECT_EQ(count(svg,
                  "<rect x=\"202.57\" y=\"74\" width=\"130.57\" height=\"24\" fill=\"#7fb3e6\" fill-opacity=\"1.00\" "
                  "stroke=\"#ffffff\" stroke-width=\"1\"><title>forward of chunk 1, micro-batch 0: 1 to 2 "
                  "units</title></rect>\n"
                  "<text x=\"267.86\" y=\"90\" font-size=\"11\" text-anchor=\"middle\">0</text>\n"),
            1u);
  EXPECT_EQ(count(svg, ">idle</text>"), 1u);
  EXPECT_EQ(count(svg, ">0 units</text>"), 1u);
  EXPECT_EQ(count(svg,
                  "<path d=\"M986.00 100v4\" stroke=\"#555555\"/><text x=\"986.00\" y=\"118\" "
                  "text-anchor=\"middle\" font-size=\"11\">7</text>"),
            1u);
  EXPECT_EQ(count(svg, "fill=\"#f0a35e\" fill-opacity"), 4u);
  EXPECT_EQ(count(svg, "fill=\"#8fd19e\" fill-opacity"), 4u);
  const Schedule s = make_schedule("1f1b", 2, 1, 2);
  const std::string named = svg_picture(s, timeline(s), "units", 100, "a <model>");
  EXPECT_EQ(xml_fault(named), "");
  EXPECT_EQ(count(named, "y=\"46\" fill=\"#555555\">a &lt;model&gt;</text>"), 1u);
  // Two-digit numbers do not fit any more, one-digit ones do.
  EXPECT_EQ(count(svg_of(make_schedule("1f1b", 1, 1, 10)), "font-size=\"11\" text-anchor=\"middle\""), 20u);
  EXPECT_EQ(count(svg_of(make_schedule("1f1b", 1, 1, 40)), "font-size=\"11\" text-anchor=\"middle\""),
            40u);  // backward alone
  EXPECT_EQ(count(svg_of(make_schedule("1f1b", 1, 1, 99)), "font-size=\"11\" text-anchor=\"middle\""), 0u);
}

TEST(SchedulePicture, SvgDrawsNoMoreThanItIsAskedFor) {
  const Schedule s = make_schedule("1f1b", 4, 1, 64);
  EXPECT_EQ(count(svg_of(s, {}, 512), "<rect "), 512u);
  EXPECT_EQ(count(svg_of(s, {}, 512), "the first"), 0u);
  const std::string svg = svg_of(s, {}, 101);
  EXPECT_EQ(xml_fault(svg), "");
  const size_t drawn = count(svg, "<rect ");
  EXPECT_GE(drawn, 101u);
  EXPECT_LT(drawn, 101u + 4);  // those that begin together
  EXPECT_EQ(count(svg, fmt::format(">the first {} of 512 tasks</text>", drawn)), 1u);
}

TEST(SchedulePicture, SvgOfANameWithMarks) {
  Schedule s = make_schedule("gpipe", 1, 1, 1);
  s.name = "a<b> & \"c\"\n";
  const std::string svg = svg_of(s);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_EQ(count(svg, ">a&lt;b&gt; &amp; \"c\" : 1 stage, 1 micro-batch; 3 units, bubble 0%</text>"), 1u);
}

TEST(SchedulePicture, TheCheckerOfXmlSeesFaults) {
  EXPECT_EQ(xml_fault("<a b=\"1\"><c/>t &amp; u</a>\n"), "");
  for (const char* bad : {"<a>", "<a></b>", "<a b=1/>", "<a b=\"1\" b=\"2\"/>", "<a/><b/>", "<a>&nbsp;</a>", "<a>></a>",
                          "t", "", "<a b=\"1/>"})
    EXPECT_NE(xml_fault(bad), "") << bad;
}

// docs/schedules.md shows each schedule as drawn by the code.
TEST(SchedulePicture, ThePageShowsWhatIsDrawn) {
  const std::string page = base::read_file(std::filesystem::path(__FILE__).parent_path() / "../../docs/schedules.md");
  size_t at = 0;
  for (std::string_view name : schedule_names()) {
    const std::string picture = text_picture(make_schedule(name, 4, name == "interleaved" ? 2 : 1, 8), 140);
    const size_t found = page.find("```\n" + picture + "```\n", at);
    ASSERT_NE(found, std::string::npos) << picture;
    at = found + picture.size();
  }
  EXPECT_EQ(count(page, "```\n"), 8u);
}

}  // namespace kintsugi::plan::schedule_picture_test
