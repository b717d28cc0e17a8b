#include "kintsugi/corpus/filters.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "kintsugi/base/file.h"

namespace kintsugi::corpus {
namespace filters_test {
namespace {

std::string repeat(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

Verdict judged(std::string_view text, Filter filter = {.gopher = true}) {
  return judge(text, filter, {});
}

const std::string kGood = repeat("The results of the study show that we have to measure with care. ", 8);

TEST(Filters, EachRuleOfGopher) {
  EXPECT_EQ(judged(kGood), Verdict::kept);
  EXPECT_EQ(judged("Too few words of the kind that have to be."), Verdict::words);
  EXPECT_EQ(judged(repeat("to be of the a ", 20)), Verdict::word_length);
  EXPECT_EQ(judged(kGood + repeat("word#ing ", 30)), Verdict::symbols);
  EXPECT_EQ(judged(kGood + repeat("wait... ", 30)), Verdict::symbols);
  EXPECT_EQ(judged(repeat("- the list of things that have to be bought with care\n", 10)), Verdict::bullets);
  EXPECT_EQ(judged(repeat("the story of things that have to be read with care to the end\n", 6) +
                   repeat("the story of things that have to be read with care \u2026\n", 4)),
            Verdict::ellipses);
  EXPECT_EQ(judged(kGood + repeat("12345 ", 40)), Verdict::letters);
  EXPECT_EQ(judged(repeat("Silicon oxide layers grow slowly under steady conditions ", 10)), Verdict::stop_words);
  EXPECT_EQ(judged(repeat("Silicon ", 60), {}), Verdict::kept);
}

TEST(Filters, LengthsAreInBytes) {
  EXPECT_EQ(judged("", {}), Verdict::too_short);
  EXPECT_EQ(judged("abc", {.min_bytes = 4}), Verdict::too_short);
  EXPECT_EQ(judged("abcd", {.min_bytes = 4, .max_bytes = 4}), Verdict::kept);
  EXPECT_EQ(judged("abcde", {.min_bytes = 4, .max_bytes = 4}), Verdict::too_long);
}

TEST(Filters, Languages) {
  if (!knows_languages()) GTEST_SKIP() << "this build lacks CLD2";
  EXPECT_EQ(language_of(kGood), "en");
  EXPECT_EQ(language_of("Die Ergebnisse der Untersuchung zeigen, dass wir sorgf\u00e4ltig messen m\u00fcssen."), "de");
  EXPECT_EQ(judged(kGood, {.languages = {"fr", "en"}}), Verdict::kept);
  EXPECT_EQ(judged(kGood, {.languages = {"fr"}}), Verdict::language);
  EXPECT_TRUE(is_language("fr"));
  EXPECT_FALSE(is_language("english"));
}

TEST(Filters, RunsOfWordsOfEvaluationSetsAreFound) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "corpus_filters";
  std::filesystem::create_directories(folder);
  base::write_file_atomically(
      folder / "eval.jsonl",
      "{\"question\": {\"stem\": \"Which of these gases is the most common one in the air of the "
      "Earth today?\"}, \"id\": 7}\n\n");
  const Overlap overlap({.paths = {(folder / "eval.jsonl").string()}, .words = 8});
  EXPECT_EQ(overlap.size(), 9u);  // 16 words
  EXPECT_TRUE(overlap.found_in("He asked: which of THESE gases, is the most common one?"));
  EXPECT_FALSE(overlap.found_in("He asked: which of these gases is the least common one?"));
  EXPECT_FALSE(overlap.found_in("which of these"));
  EXPECT_EQ(judge("which of these gases is the most common", {}, overlap), Verdict::contaminated);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace filters_test
}  // namespace kintsugi::corpus
