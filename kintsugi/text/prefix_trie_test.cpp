#include "kintsugi/text/prefix_trie.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <string>

namespace kintsugi::text::prefix_trie_test {

using Found = std::vector<std::pair<size_t, int32_t>>;

Found found_in(const PrefixTrie& trie, std::string_view text) {
  Found found;
  trie.each(text, [&](size_t size, int32_t value) { found.emplace_back(size, value); });
  return found;
}

TEST(PrefixTrie, FindsWhatTextBeginsWith) {
  std::mt19937 random(1);
  const auto word = [&](size_t most) {
    std::string text;
    const size_t size = random() % most;
    for (size_t i = 0; i < size; ++i)
      text += static_cast<char>(random() % 7 == 0 ? random() % 256 : 'a' + random() % 3);
    return text;
  };
  std::map<std::string, int32_t> words;
  for (int32_t i = 0; i < 3000; ++i) words[word(12)] = i;
  words.erase("");
  const PrefixTrie trie({words.begin(), words.end()});
  for (int i = 0; i < 3000; ++i) {
    const std::string text = word(20);
    Found expected;
    for (size_t size = 1; size <= text.size(); ++size)
      if (const auto at = words.find(text.substr(0, size)); at != words.end()) expected.emplace_back(size, at->second);
    EXPECT_EQ(found_in(trie, text), expected);
  }
}

// A node per byte of one long word of equal bytes: no search visits all nodes before it.
TEST(PrefixTrie, OneLongWord) {
  const auto start = std::chrono::steady_clock::now();
  const std::string word(400'000, 'x');
  const PrefixTrie trie({{word, 7}});
  EXPECT_EQ(found_in(trie, word + "x"), (Found{{word.size(), 7}}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace kintsugi::text::prefix_trie_test
