#include "kintsugi/samples/masked_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "kintsugi/data/test_folder.h"
#include "kintsugi/samples/evaluation_sampler.h"
#include "kintsugi/samples/sampler.h"

namespace kintsugi::samples::masked_samples_test {
namespace {

constexpr int64_t kVocab = 1000, kMask = 3, kFirst = 1, kSeparator = 2;

// Token i is 10 + i mod 900, in documents of 37.
std::shared_ptr<const data::TokenFile> file_of(const data::TestFolder& folder, int32_t tokens) {
  std::vector<std::vector<int32_t>> documents;
  for (int32_t i = 0; i < tokens; ++i) {
    if (i % 37 == 0) documents.emplace_back();
    documents.back().push_back(10 + i % 900);
  }
  data::write_tokens(folder / "t", documents, {.vocab_size = kVocab, .tokenizer = ""});
  return std::make_shared<data::TokenFile>(folder / "t");
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

MaskedSamples training(const data::TestFolder& folder, const MaskedOptions& o) {
  auto windows = std::make_unique<Sampler>(
      std::vector<WeightedFile>{{file_of(folder, 5000), 1.0}},
      SamplerOptions{.sequence = window_of(o), .seed = o.seed, .reset_at_document = o.pairs, .vocab_size = kVocab});
  return {std::move(windows), UINT64_MAX, o};
}

std::vector<int32_t> ints(const BatchMemory& batch, std::string_view name) {
  const std::span<const int32_t> part = batch.get<int32_t>(name);
  return {part.begin(), part.end()};
}

BatchMemory sample(const MaskedSamples& samples, uint64_t n, int64_t count = 1) {
  BatchMemory batch(count, samples.parts());
  samples.fill(n, batch.view());
  return batch;
}

// The sample before masking.
std::vector<int32_t> whole(const BatchMemory& batch) {
  std::vector<int32_t> tokens = ints(batch, "tokens"), labels = ints(batch, "labels");
  for (size_t i = 0; i < tokens.size(); ++i)
    if (labels[i] != kIgnored) tokens[i] = labels[i];
  return tokens;
}

}  // namespace

// One part: a window of consecutive tokens between first_token and separator_token; 15% are predicted, of which 80% are
// masked, 10% random, 10% unchanged.
TEST(MaskedSamples, HideTokensOfAWindow) {
  const data::TestFolder folder;
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
    const std::vector<int32_t> shown = ints(batch, "tokens"), labels = ints(batch, "labels"),
                               types = ints(batch, "types");
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == kIgnored) continue;
      ++predicted;
      ++places[i];
      if (shown[i] == kMask)
        ++hidden;
      else if (shown[i] == labels[i])
        ++left;
      else
        ++other;
    }
    ASSERT_EQ(predicted, 5);  // of 30: 4.5, to the nearest
    EXPECT_EQ(labels.front(), kIgnored);
    EXPECT_EQ(labels.back(), kIgnored);
    EXPECT_TRUE(batch.get<int32_t>("classes").empty());
    EXPECT_EQ(std::accumulate(types.begin(), types.end(), 0), 0);
  }
  EXPECT_NEAR(hidden, 8000, 160);
  EXPECT_NEAR(left, 1000, 120);
  EXPECT_NEAR(other, 1000, 120);
  ASSERT_EQ(places.size(), 30u);
  for (const auto& [place, count] : places) EXPECT_NEAR(count, 10000 / 30, 90) << place;
}

// Two parts: the second follows the first in half of the samples, and the cut is within a document.
TEST(MaskedSamples, PairsFollowOneAnotherInHalfOfThem) {
  const data::TestFolder folder;
  const MaskedSamples samples = training(folder, options(true));
  int follows = 0;
  for (uint64_t n = 0; n < 2000; ++n) {
    const BatchMemory batch = sample(samples, n);
    const std::vector<int32_t> tokens = whole(batch);
    const std::vector<int32_t> types = ints(batch, "types");
    const auto second = static_cast<size_t>(std::ranges::find(types, 1) - types.begin());
    ASSERT_LT(second, tokens.size());
    EXPECT_EQ(std::accumulate(types.begin(), types.end(), 0), static_cast<int>(tokens.size() - second));
    ASSERT_EQ(tokens[second - 1], kSeparator);
    ASSERT_EQ(tokens.back(), kSeparator);
    EXPECT_EQ(batch.get<float>("weights")[0], 4.0f);  // 29 tokens of text
    const bool next = (tokens[second] - 10) == (tokens[second - 2] - 10 + 1) % 900;
    if (ints(batch, "classes")[0] == 0) {
      ++follows;
      ASSERT_TRUE(next || tokens[second] == 10) << n;
    } else {
      EXPECT_FALSE(next) << n;
    }
  }
  EXPECT_NEAR(follows, 1000, 90);
}

// A batch equals its samples read individually, whatever its memory held before.
TEST(MaskedSamples, AreAFunctionOfTheirNumber) {
  const data::TestFolder folder;
  for (const bool pairs : {false, true}) {
    const MaskedSamples samples = training(folder, options(pairs));
    const BatchMemory four = sample(samples, 40, 4);
    for (size_t n = 0; n < 4; ++n) {
      BatchMemory one(1, samples.parts());
      std::ranges::fill(one.get<int32_t>("tokens"), -77);
      std::ranges::fill(one.get<int32_t>("labels"), -77);
      samples.fill(40 + n, one.view());
      for (const std::string_view name : {"tokens", "labels", "types"}) {
        const std::vector<int32_t> all = ints(four, name);
        EXPECT_EQ(ints(one, name), std::vector<int32_t>(all.begin() + static_cast<int64_t>(n) * 32,
                                                        all.begin() + static_cast<int64_t>(n + 1) * 32))
            << name;
      }
    }
  }
}

TEST(MaskedSamples, OfAnEvaluationEnd) {
  const data::TestFolder folder;
  const MaskedOptions o = options(true);
  auto windows = std::make_unique<EvaluationSampler>(
      file_of(folder, 100),
      EvaluationOptions{.sequence = window_of(o), .reset_at_document = true, .vocab_size = kVocab});
  const MaskedSamples samples(std::move(windows), 3, o);
  EXPECT_EQ(samples.num_samples(), 3u);
  const BatchMemory batch = sample(samples, 2, 2);
  EXPECT_EQ(std::ranges::count_if(ints(batch, "labels"), [](int32_t label) { return label != kIgnored; }), 4);
  EXPECT_NE(ints(batch, "classes")[0], kIgnored);
  EXPECT_EQ(ints(batch, "classes")[1], kIgnored);
  EXPECT_EQ(batch.get<float>("weights")[1], 0.0f);
}

TEST(MaskedSamples, NeedRoom) {
  EXPECT_THROW(window_of(options(false, 2)), base::UserError);
  EXPECT_EQ(window_of(options(false, 3)), 1);
  EXPECT_THROW(window_of(options(true, 4)), base::UserError);
}

}  // namespace kintsugi::samples::masked_samples_test
