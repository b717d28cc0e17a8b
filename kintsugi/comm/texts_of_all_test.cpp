#include "kintsugi/comm/texts_of_all.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/comm/thread_harness.h"

namespace kintsugi::comm::texts_of_all_test {
namespace {

// For rank r: its digit r times, so the first text is empty.
std::string text_of(int rank) {
  return std::string(static_cast<size_t>(rank), static_cast<char>('0' + rank));
}

}  // namespace

TEST(TextsOfAll, OfOtherLengthsAreOnEveryRank) {
  const auto said = on_ranks(4, [](World& world) {
    const auto all = group_of_all(world);
    return fmt::format("{}", fmt::join(texts_of_all(*all, text_of(world.rank())), "|"));
  });
  for (const std::string& text : said) EXPECT_EQ(text, "|1|22|333");
}

TEST(TextsOfAll, OrOnRank0Alone) {
  const auto said = on_ranks(3, [](World& world) {
    const auto all = group_of_all(world);
    const std::vector<std::string> texts = texts_on_rank_0(*all, text_of(2 - world.rank()));
    return fmt::format("{}: {}", texts.size(), fmt::join(texts, "|"));
  });
  EXPECT_EQ(said, (std::vector<std::string>{"3: 22|1|", "0: ", "0: "}));
}

TEST(TextsOfAll, NothingIsATextToo) {
  const auto said = on_ranks(2, [](World& world) {
    const auto all = group_of_all(world);
    return fmt::format("{} {}", texts_of_all(*all, "").size(), texts_on_rank_0(*all, "").size());
  });
  EXPECT_EQ(said, (std::vector<std::string>{"2 2", "2 0"}));
}

}  // namespace kintsugi::comm::texts_of_all_test
