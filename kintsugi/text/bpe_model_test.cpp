#include "kintsugi/text/bpe_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace kintsugi::text::bpe_model_test {
namespace {

// The definition, literally: of all adjacent pairs, merge the first of the lowest rank, and repeat.
std::vector<int32_t> merge_slowly(const BpeModel::Options& options, std::vector<int32_t> symbols) {
  std::map<std::pair<int32_t, int32_t>, std::pair<size_t, int32_t>> ranks;
  for (size_t i = 0; i < options.merges.size(); ++i) {
    ranks[{options.merges[i].left, options.merges[i].right}] = {i, options.merges[i].merged};
  }
  while (true) {
    std::pair<size_t, int32_t> best = {SIZE_MAX, -1};
    size_t at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found != ranks.end() && found->second.first < best.first) best = found->second, at = i;
    }
    if (best.second < 0) return symbols;
    symbols[at] = best.second;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

// Merges over the letters a to d in any order, so ranks need not increase with length.
BpeModel::Options make_random(std::mt19937& random) {
  BpeModel::Options options;
  options.tokens = {"a", "b", "c", "d"};
  for (int i = 0; i < 60; ++i) {
    const auto left = static_cast<int32_t>(random() % options.tokens.size());
    const auto right = static_cast<int32_t>(random() % options.tokens.size());
    const std::string token = options.tokens[left] + options.tokens[right];
    if (std::find(options.tokens.begin(), options.tokens.end(), token) != options.tokens.end()) continue;
    options.merges.push_back({left, right, static_cast<int32_t>(options.tokens.size())});
    options.tokens.push_back(token);
  }
  std::shuffle(options.merges.begin(), options.merges.end(), random);
  return options;
}

TEST(BpeModel, MergesAsDefined) {
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const BpeModel::Options options = make_random(random);
    const BpeModel model(options);
    for (int k = 0; k < 60; ++k) {
      std::string word;
      std::vector<int32_t> symbols;
      for (size_t n = 1 + random() % (k % 2 ? 20 : 120); n > 0; --n) {
        symbols.push_back(static_cast<int32_t>(random() % 4));
        word.push_back(static_cast<char>('a' + symbols.back()));
      }
      std::vector<int32_t> ids;
      ASSERT_TRUE(model.encode_word(word, ids));
      ASSERT_EQ(ids, merge_slowly(options, symbols)) << word;
    }
  }
}

TEST(BpeModel, TakesALongWord) {
  BpeModel::Options options{.tokens = {"a", "b", "aa", "aaaa"}, .merges = {{0, 0, 2}, {2, 2, 3}}};
  const BpeModel model(options);
  std::string word(4 << 16, 'a');
  word += 'b';
  std::vector<int32_t> ids;
  ASSERT_TRUE(model.encode_word(word, ids));
  EXPECT_EQ(ids.size(), (1u << 16) + 1);
  EXPECT_EQ(ids[7], 3);
  EXPECT_EQ(ids.back(), 1);
}

TEST(BpeModel, SaysThatItLacksAByte) {
  const BpeModel model({.tokens = {"a", "b"}, .merges = {}});
  std::vector<int32_t> ids;
  EXPECT_FALSE(model.encode_word("abc", ids));
}

TEST(BpeModel, PrefersWholeWordsIfAsked) {
  BpeModel::Options options{.tokens = {"a", "b", "c", "bc", "abc"}, .merges = {{1, 2, 3}}};
  std::vector<int32_t> ids;
  ASSERT_TRUE(BpeModel(options).encode_word("abc", ids));
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 3}));
  options.prefer_whole_words = true;
  ids.clear();
  ASSERT_TRUE(BpeModel(options).encode_word("abc", ids));
  EXPECT_EQ(ids, (std::vector<int32_t>{4}));
}

}  // namespace
}  // namespace kintsugi::text::bpe_model_test
