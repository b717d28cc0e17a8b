#include "kintsugi/text/word_cache.h"

#include <gtest/gtest.h>

#include <string>

namespace kintsugi::text::word_cache_test {
namespace {

using Ids = std::vector<int32_t>;

TEST(WordCache, TellsWordsApart) {
  WordCache cache;
  const uint32_t model = WordCache::next_model(), other = WordCache::next_model();
  for (size_t size = 1; size <= kMostPacked; ++size) {
    const std::string word(size, 'a');
    Ids ids;
    EXPECT_FALSE(cache.find(model, word, ids));
    cache.put(model, word, Ids{1, 2, static_cast<int32_t>(size)});
    EXPECT_TRUE(cache.find(model, word, ids));
    EXPECT_EQ(ids, (Ids{1, 2, static_cast<int32_t>(size)}));
    EXPECT_FALSE(cache.find(other, word, ids));
    for (size_t i = 0; i < size; ++i) {
      std::string changed = word;
      changed[i] = 'b';
      EXPECT_NE(pack(changed), pack(word)) << changed;
      EXPECT_FALSE(cache.find(model, changed, ids)) << changed;
    }
  }
}

TEST(WordCache, LeavesOutWhatIsLong) {
  WordCache cache;
  const uint32_t model = WordCache::next_model();
  Ids ids;
  EXPECT_FALSE(cache.find(model, std::string(kMostPacked + 1, 'a'), ids));
  cache.put(model, std::string(kMostPacked + 1, 'a'), Ids{1});
  EXPECT_FALSE(cache.find(model, std::string(kMostPacked + 1, 'a'), ids));
  EXPECT_FALSE(cache.find(model, "a", ids));
  cache.put(model, "a", Ids{1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_FALSE(cache.find(model, "a", ids));
  EXPECT_TRUE(ids.empty());
}

}  // namespace
}  // namespace kintsugi::text::word_cache_test
