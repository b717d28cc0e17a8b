#include "kintsugi/text/train_bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/text/byte_symbols.h"
#include "tests/paths.h"

namespace kintsugi::text::train_bpe_test {
namespace {

using Word = std::vector<std::string>;
using Merge = std::pair<std::string, std::string>;

std::vector<Merge> learn_slowly(const WordCounter& counter, size_t most) {
  std::vector<std::pair<Word, uint64_t>> words;
  for (size_t i = 0; i < counter.size(); ++i) {
    Word word;
    for (const char byte : counter.word(i)) word.emplace_back(1, byte);
    words.emplace_back(word, counter.count(i));
  }
  std::vector<Merge> merges;
  while (merges.size() < most) {
    std::map<Merge, uint64_t> pairs;  // in the order of bytes, char being signed or not
    for (const auto& [word, count] : words) {
      for (size_t k = 0; k + 1 < word.size(); ++k) pairs[{word[k], word[k + 1]}] += count;
    }
    const auto best =
        std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == pairs.end() || best->second < 2) break;
    merges.push_back(best->first);
    for (auto& [word, count] : words) {
      for (size_t k = 0; k + 1 < word.size(); ++k) {
        if (word[k] != merges.back().first || word[k + 1] != merges.back().second) continue;
        word[k] += word[k + 1];
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(k) + 1);
      }
    }
  }
  return merges;
}

std::vector<Merge> merges_of(const Tokenizer& tokenizer) {
  std::vector<Merge> merges;
  const auto document = nlohmann::json::parse(tokenizer.to_json());
  for (const std::string line : document["model"]["merges"]) {
    Merge merge;
    read_symbols(line.substr(0, line.find(' ')), merge.first);
    read_symbols(line.substr(line.find(' ') + 1), merge.second);
    merges.push_back(merge);
  }
  return merges;
}

TEST(TrainBpe, LearnsTheExampleOfThePaper) {
  WordCounter counter;
  for (const auto& [word, times] : {std::pair("low", 5), {"lower", 2}, {"newest", 6}, {"widest", 3}}) {
    for (int i = 0; i < times; ++i) counter.add(word);
  }
  // "e s" and "s t" occur nine times each, then "es t"; among "l o" and "o w" the smaller bytes come first.
  const auto tokenizer = train_bpe(counter, 256 + 5 + 1);
  EXPECT_EQ(merges_of(*tokenizer), (std::vector<Merge>{{"e", "s"}, {"es", "t"}, {"l", "o"}, {"lo", "w"}, {"e", "w"}}));
  EXPECT_EQ(tokenizer->vocab_size(), 262);
  EXPECT_EQ(tokenizer->end_of_text(), 261);
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{257, 261}), "est<|endoftext|>");
}

TEST(TrainBpe, AgreesWithTheDefinition) {
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    WordCounter counter;
    const int letters = 1 + static_cast<int>(random() % 5);
    for (int k = 0; k < 60; ++k) {
      std::string word;
      for (size_t n = 1 + random() % 14; n > 0; --n) word.push_back(static_cast<char>('a' + random() % letters));
      counter.add(word);
    }
    counter.add("\xFF\xFE \xFF\xFE é é");
    const auto expected = learn_slowly(counter, 60);
    const auto tokenizer = train_bpe(counter, static_cast<int32_t>(257 + expected.size()));
    ASSERT_EQ(merges_of(*tokenizer), expected);
  }
}

TEST(TrainBpe, IsTheSameForAnyThreads) {
  std::mt19937 random(2);
  std::vector<std::string> texts(64);
  for (std::string& text : texts) {
    for (int k = 0; k < 400; ++k) text += std::string(1, " abcdefgh\n"[random() % 10]);
  }
  WordCounter one;
  for (const std::string& text : texts) one.add(text);
  std::vector<WordCounter> several(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < several.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < texts.size(); i += several.size()) several[t].add(texts[texts.size() - 1 - i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  WordCounter all;
  for (WordCounter& counter : several) all.merge(std::move(counter));
  EXPECT_EQ(all.size(), one.size());
  EXPECT_EQ(all.num_bytes(), one.num_bytes());
  EXPECT_EQ(several[0].size(), 0u);
  std::vector<int32_t> steps;
  const auto tokenizer = train_bpe(all, 600, [&](int32_t done, int32_t total) {
    EXPECT_EQ(total, 600);
    steps.push_back(done);
  });
  EXPECT_EQ(steps.size(), 600u - 257);
  EXPECT_EQ(steps.back(), 600);
  EXPECT_EQ(tokenizer->to_json(), train_bpe(one, 600)->to_json());
  const auto again = parse_tokenizer(tokenizer->to_json(), "x.json");
  for (const std::string& text : texts) {
    ASSERT_EQ(again->encode(text), tokenizer->encode(text));
    ASSERT_EQ(again->decode(again->encode(text)), text);
  }
}

TEST(TrainBpe, SaysWhenTheCorpusIsTooSmall) {
  WordCounter counter;
  counter.add("abab abab");
  try {
    train_bpe(counter, 5000);
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(),
                 "[tokenizer] the corpus has pairs for a vocabulary of 259 at most, and 5000 was asked for; ask for "
                 "less, or take a larger corpus");
  }
  try {
    train_bpe(counter, 256);
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(), "[tokenizer] a vocabulary of 256 is too small for byte-level BPE; the least is 257");
  }
  EXPECT_EQ(train_bpe(WordCounter(), 257)->vocab_size(), 257);
}

TEST(TrainBpe, LearnsFromTinyShakespeare) {
  const std::filesystem::path path = tests::shared_folder() + "/data/tinyshakespeare/input.txt";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const std::string text = base::read_file(path);
  WordCounter counter;
  counter.add(text);
  const auto tokenizer = train_bpe(counter, 1024);
  const auto ids = tokenizer->encode(text);
  EXPECT_EQ(tokenizer->decode(ids), text);
  EXPECT_LT(ids.size() * 2, text.size());
}

TEST(WordCounter, CutsEndlessWords) {
  WordCounter counter;
  counter.add(std::string(5000, 'x') + " a");
  ASSERT_EQ(counter.size(), 3u);
  EXPECT_EQ(counter.word(0).size(), 1024u);
  EXPECT_EQ(counter.count(0), 4u);
  EXPECT_EQ(counter.word(1).size(), 5000u - 4096);
  EXPECT_EQ(counter.word(2), " a");
  EXPECT_EQ(counter.num_bytes(), 5002u);
}

}  // namespace
}  // namespace kintsugi::text::train_bpe_test
