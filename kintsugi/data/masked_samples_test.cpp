#include "kintsugi/data/masked_samples.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "kintsugi/data/evaluation_sampler.h"
#include "kintsugi/data/sampler.h"
#include "kintsugi/data/test_folder.h"

namespace kintsugi::data::masked_samples_test {
namespace {

constexpr int64_t kVocab = 1000, kMask = 3, kFirst = 1, kSeparator = 2;

// Token i is 10 + i mod 900, in documents of 37.
std::shared_ptr<const TokenFile> file_of(const TestFolder& folder, int32_t tokens) {
  std::vector<std::vector<int32_t>> documents;
  for (int32_t i = 0; i < tokens; ++i) {
    if (i % 37 == 0) documents.emplace_back();
    documents.back().push_back(10 + i % 900);
  }
  write_tokens(folder / "t", documents, {.vocab_size = kVocab, .tokenizer = ""});
  return std::make_shared<TokenFile>(folder / "t");
}

MaskedOptions options(bool pairs, int64_t sequence = 32) {
  return {.sequence = sequence,
          .pairs = pairs,
          .share = 0.15,
          .mask = kMask,
          .first = kFirst,
          .separator = kSeparator,
          .vocab = kVocab,
          .seed = 5};
}

MaskedSamples training(const TestFolder& folder, const MaskedOptions& o) {
  auto windows = std::make_unique<Sampler>(
      std::vector<WeightedFile>{{file_of(folder, 5000), 1.0}},
      SamplerOptions{.sequence = window_of(o), .seed = o.seed, .reset_at_document = o.pairs, .vocab_size = kVocab});
  return {std::move(windows), UINT64_MAX, o};
}

BatchMemory sample(const MaskedSamples& samples, uint64_t n, int64_t count = 1) {
  BatchMemory batch(count, samples.row());
  samples.fill(n, batch.view());
  return batch;
}

// The sample before anything was hidden.
std::vector<int32_t> whole(const BatchMemory& batch) {
  std::vector<int32_t> tokens = batch.tokens;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (batch.labels[i] != kIgnored) tokens[i] = batch.labels[i];
  return tokens;
}

}  // namespace

// One part: a window of neighbouring tokens between the first token and the separator, of which 15% are predicted, of
// these 80% hidden, 10% random, 10% left.
TEST(MaskedSamples, HideTokensOfAWindow) {
  const TestFolder folder;
  const MaskedSamples samples = training(folder, options(false));
  int hidden = 0, left = 0, other = 0;
  std::map<size_t, int> places;
  for (uint64_t n = 0; n < 2000; ++n) {
    const BatchMemory batch = sample(samples, n);
    const std::vector<int32_t> tokens = whole(batch);
    ASSERT_EQ(tokens.front(), kFirst);
    ASSERT_EQ(tokens.back(), kSeparator);
    for (size_t i = 2; i + 1 < tokens.size(); ++i) {
      const bool ring = tokens[i] == 10 && tokens[i - 1] == 10 + 4999 % 900;
      ASSERT_TRUE(ring || (tokens[i] - 10) == (tokens[i - 1] - 10 + 1) % 900) << n << " at " << i;
    }
    int predicted = 0;
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      if (batch.labels[i] == kIgnored) continue;
      ++predicted;
      ++places[i];
      if (batch.tokens[i] == kMask)
        ++hidden;
      else if (batch.tokens[i] == batch.labels[i])
        ++left;
      else
        ++other;
    }
    ASSERT_EQ(predicted, 5);  // of 30: 4.5, to the nearest
    EXPECT_EQ(batch.labels.front(), kIgnored);
    EXPECT_EQ(batch.labels.back(), kIgnored);
    EXPECT_TRUE(batch.classes.empty());
    EXPECT_EQ(std::accumulate(batch.types.begin(), batch.types.end(), 0), 0);
  }
  EXPECT_NEAR(hidden, 8000, 160);
  EXPECT_NEAR(left, 1000, 120);
  EXPECT_NEAR(other, 1000, 120);
  ASSERT_EQ(places.size(), 30u);
  for (const auto& [place, count] : places) EXPECT_NEAR(count, 10000 / 30, 90) << place;
}

// Two parts: the second follows the first in half of the samples, and the cut is within a document.
TEST(MaskedSamples, PairsFollowOneAnotherInHalfOfThem) {
  const TestFolder folder;
  const MaskedSamples samples = training(folder, options(true));
  int follows = 0;
  for (uint64_t n = 0; n < 2000; ++n) {
    const BatchMemory batch = sample(samples, n);
    const std::vector<int32_t> tokens = whole(batch);
    const auto second = static_cast<size_t>(std::ranges::find(batch.types, 1) - batch.types.begin());
    ASSERT_LT(second, tokens.size());
    EXPECT_EQ(std::accumulate(batch.types.begin(), batch.types.end(), 0), static_cast<int>(tokens.size() - second));
    ASSERT_EQ(tokens[second - 1], kSeparator);
    ASSERT_EQ(tokens.back(), kSeparator);
    EXPECT_EQ(batch.weights, std::vector<float>{4.0f});  // 29 tokens of text
    const bool next = (tokens[second] - 10) == (tokens[second - 2] - 10 + 1) % 900;
    if (batch.classes[0] == 0) {
      ++follows;
      ASSERT_TRUE(next || tokens[second] == 10) << n;
    } else {
      EXPECT_FALSE(next) << n;
    }
  }
  EXPECT_NEAR(follows, 1000, 90);
}

// A batch is its samples one by one, whatever memory held before.
TEST(MaskedSamples, AreAFunctionOfTheirNumber) {
  const TestFolder folder;
  for (const bool pairs : {false, true}) {
    const MaskedSamples samples = training(folder, options(pairs));
    const BatchMemory four = sample(samples, 40, 4);
    for (size_t n = 0; n < 4; ++n) {
      BatchMemory one(1, samples.row());
      std::ranges::fill(one.tokens, -77);
      std::ranges::fill(one.labels, -77);
      samples.fill(40 + n, one.view());
      EXPECT_TRUE(std::equal(one.tokens.begin(), one.tokens.end(), four.tokens.begin() + static_cast<int64_t>(n) * 32));
      EXPECT_TRUE(std::equal(one.labels.begin(), one.labels.end(), four.labels.begin() + static_cast<int64_t>(n) * 32));
      EXPECT_TRUE(std::equal(one.types.begin(), one.types.end(), four.types.begin() + static_cast<int64_t>(n) * 32));
    }
  }
}

TEST(MaskedSamples, OfAnEvaluationEnd) {
  const TestFolder folder;
  const MaskedOptions o = options(true);
  auto windows = std::make_unique<EvaluationSampler>(
      file_of(folder, 100),
      EvaluationOptions{.sequence = window_of(o), .reset_at_document = true, .vocab_size = kVocab});
  const MaskedSamples samples(std::move(windows), 3, o);
  EXPECT_EQ(samples.num_samples(), 3u);
  const BatchMemory batch = sample(samples, 2, 2);
  EXPECT_EQ(std::ranges::count_if(batch.labels, [](int32_t label) { return label != kIgnored; }), 4);
  EXPECT_NE(batch.classes[0], kIgnored);
  EXPECT_EQ(batch.classes[1], kIgnored);
  EXPECT_EQ(batch.weights[1], 0.0f);
}

TEST(MaskedSamples, NeedRoom) {
  EXPECT_THROW(window_of(options(false, 2)), base::UserError);
  EXPECT_EQ(window_of(options(false, 3)), 1);
  EXPECT_THROW(window_of(options(true, 4)), base::UserError);
}

}  // namespace kintsugi::data::masked_samples_test
