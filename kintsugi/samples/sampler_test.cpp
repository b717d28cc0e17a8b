#include "kintsugi/samples/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "kintsugi/data/test_folder.h"
#include "kintsugi/samples/evaluation_sampler.h"
#include "kintsugi/samples/permutation.h"
#include "kintsugi/samples/share.h"

namespace kintsugi::samples::sampler_test {
namespace {

struct Batch {
  std::vector<int32_t> tokens, labels, starts;

  // With and without the starts of documents.
  Batch(int64_t samples, int64_t sequence, bool documents = false)
      : tokens(static_cast<size_t>(samples * sequence), -7), labels(tokens), starts(tokens) {
    for (const auto& [name, part] : {std::pair{"tokens", &tokens}, {"labels", &labels}, {"starts", &starts}})
      parts.push_back({.name = name,
                       .dtype = tensor::DType::i32,
                       .elements = sequence,
                       .data = std::as_writable_bytes(std::span(*part)).data()});
    if (!documents) parts.pop_back();
    rows = samples;
  }
  Batch(const Batch&) = delete;
  BatchView view() { return {parts, rows}; }

  std::vector<PartView> parts;
  int64_t rows;
};

// Token i of the file is i, so a sample shows its origin.
std::shared_ptr<const data::TokenFile> counting_file(const data::TestFolder& folder, const std::string& name,
                                                     int32_t tokens) {
  std::vector<int32_t> ids(static_cast<size_t>(tokens));
  std::iota(ids.begin(), ids.end(), 0);
  data::write_tokens(folder / name, {ids}, {.vocab_size = tokens, .tokenizer = ""});
  return std::make_shared<data::TokenFile>(folder / name);
}

}  // namespace

// Each sample after a token that predicts its first: every token of the file is predicted once.
TEST(Sampler, SamplesMayBeginWithAToken) {
  const data::TestFolder folder;
  const auto file = counting_file(folder, "ten", 10);
  const EvaluationSampler all(file, {.sequence = 4, .begin = 99});
  EXPECT_EQ(all.num_samples(), 3u);
  Batch batch(3, 4);
  all.fill(0, batch.view());
  EXPECT_EQ(batch.tokens, (std::vector<int32_t>{99, 0, 1, 2, 99, 4, 5, 6, 99, 8, 9, 0}));
  EXPECT_EQ(batch.labels, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, kIgnored, kIgnored}));
  const EvaluationSampler begun(file, {.sequence = 4, .begin = 4});  // the second window begins with it already
  begun.fill(1, batch.view());
  EXPECT_EQ(std::vector(batch.tokens.begin(), batch.tokens.begin() + 4), (std::vector<int32_t>{4, 5, 6, 7}));

  data::write_tokens(folder / "two", {{0, 1, 2}, {3, 4}}, {.vocab_size = 5, .tokenizer = ""});
  const EvaluationSampler apart(std::make_shared<data::TokenFile>(folder / "two"),
                                {.sequence = 4, .reset_at_document = true, .begin = 99});
  Batch documents(2, 4, true);
  apart.fill(0, documents.view());
  EXPECT_EQ(documents.tokens, (std::vector<int32_t>{99, 0, 1, 2, 99, 4, 0, 0}));
  EXPECT_EQ(documents.labels, (std::vector<int32_t>{0, 1, 2, kIgnored, 4, kIgnored, kIgnored, kIgnored}));
  EXPECT_EQ(documents.starts, (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 2, 2}));

  const Sampler ring({{file, 1.0}}, {.sequence = 5, .seed = 3, .begin = 99});
  Batch epoch(2, 5);
  ring.fill(0, epoch.view());
  std::multiset<int32_t> predicted(epoch.labels.begin(), epoch.labels.end());
  predicted.erase(kIgnored);
  EXPECT_EQ(std::set<int32_t>(predicted.begin(), predicted.end()).size(), predicted.size());
  EXPECT_GE(predicted.size(), 9u);
  EXPECT_EQ(epoch.tokens[0], 99);
}

TEST(Permutation, IsABijection) {
  for (const uint64_t size : {1ull, 2ull, 3ull, 5ull, 16ull, 17ull, 1000ull, 65536ull, 99991ull}) {
    for (const uint64_t key : {0ull, 1ull, 77ull}) {
      const Permutation permutation(size, key);
      std::vector<bool> seen(size);
      for (uint64_t i = 0; i < size; ++i) {
        const uint64_t image = permutation(i);
        ASSERT_LT(image, size);
        ASSERT_FALSE(seen[image]) << size << " " << key << " " << i;
        seen[image] = true;
      }
    }
  }
}

TEST(Permutation, HugeSizesTakeNoMemory) {
  const uint64_t size = 1'000'000'000'003ull;
  const Permutation permutation(size, 5);
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 10000; ++i) {
    const uint64_t image = permutation(i);
    ASSERT_LT(image, size);
    seen.insert(image);
  }
  EXPECT_EQ(seen.size(), 10000u);
}

TEST(Permutation, EveryPlaceIsEquallyLikely) {
  for (const uint64_t size : {2ull, 3ull, 7ull, 12ull}) {
    constexpr int kKeys = 12000;
    std::vector<std::vector<int>> counts(size, std::vector<int>(size));
    for (uint64_t key = 0; key < kKeys; ++key) {
      const Permutation permutation(size, key);
      for (uint64_t i = 0; i < size; ++i) ++counts[i][permutation(i)];
    }
    const double expected = static_cast<double>(kKeys) / static_cast<double>(size);
    for (uint64_t i = 0; i < size; ++i) {
      for (uint64_t j = 0; j < size; ++j)
        EXPECT_NEAR(counts[i][j], expected, 5 * std::sqrt(expected)) << size << i << j;
    }
  }
}

// The numbers determine what a run sees: a change would break resuming.
TEST(Permutation, NeverChanges) {
  const Permutation permutation(10, 42);
  std::vector<uint64_t> images;
  for (uint64_t i = 0; i < 10; ++i) images.push_back(permutation(i));
  EXPECT_EQ(images, (std::vector<uint64_t>{4, 8, 1, 9, 5, 6, 3, 7, 2, 0}));
}

TEST(Mixture, ProportionsHoldAtEveryPrefix) {
  const std::vector<std::vector<double>> cases = {
      {1},       {0.5, 0.5},     {0.7, 0.3}, {3, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1}, {0.9, 0.05, 0.03, 0.02},
      {1e-6, 1}, {5, 4, 3, 2, 1}};
  for (const std::vector<double>& weights : cases) {
    const Mixture mixture(weights);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<uint64_t> counts(weights.size());
    const double bound = 0.51 * std::ceil(std::log2(static_cast<double>(weights.size()) + 1)) + 0.01;
    for (uint64_t n = 0; n < 20000; ++n) {
      const Mixture::Place place = mixture.locate(n);
      ASSERT_EQ(place.index, counts[place.source]);
      ++counts[place.source];
      for (size_t s = 0; s < weights.size(); ++s) {
        const double ideal = static_cast<double>(n + 1) * weights[s] / total;
        ASSERT_LE(std::abs(static_cast<double>(counts[s]) - ideal), bound) << weights.size() << " " << s << " " << n;
      }
    }
  }
}

TEST(Mixture, BadWeights) {
  const std::vector<double> weights = {1, 0};
  EXPECT_EQ(data::error_of([&] { Mixture mixture(weights); }),
            "[data] a weight of 0 in a mixture; weights are positive numbers");
}

TEST(Sampler, EveryTokenIsPredictedOnceInAnEpoch) {
  const data::TestFolder folder;
  for (const int32_t tokens : {9, 64, 65, 1000}) {
    const auto file = counting_file(folder, "t", tokens);
    const Sampler sampler({{file, 1.0}}, {.sequence = 8, .seed = 3});
    const uint64_t samples = sampler.samples_per_epoch(0);
    EXPECT_EQ(samples, static_cast<uint64_t>(tokens / 8));
    for (uint64_t epoch = 0; epoch < 5; ++epoch) {
      std::vector<int> predicted(static_cast<size_t>(tokens));
      Batch batch(1, 8);
      for (uint64_t n = 0; n < samples; ++n) {
        sampler.fill(epoch * samples + n, batch.view());
        for (size_t i = 0; i < 8; ++i) {
          if (batch.labels[i] == kIgnored) {
            EXPECT_EQ(batch.tokens[i], tokens - 1);
            continue;
          }
          ASSERT_EQ(batch.labels[i], batch.tokens[i] + 1);
          ++predicted[static_cast<size_t>(batch.labels[i])];
        }
      }
      EXPECT_EQ(predicted[0], 0);
      int missed = 0;
      for (size_t t = 1; t < predicted.size(); ++t) {
        ASSERT_LE(predicted[t], 1);
        missed += predicted[t] == 0;
      }
      EXPECT_LT(missed, 8);
    }
  }
}

TEST(Sampler, TheLayoutChangesNoSample) {
  const data::TestFolder folder;
  const auto file = counting_file(folder, "t", 5000);
  const auto other = counting_file(folder, "u", 700);
  const Sampler sampler({{file, 0.8}, {other, 0.2}}, {.sequence = 4, .seed = 11});
  Batch whole(24, 4);
  sampler.fill(5 * 24, whole.view());
  for (const int64_t ranks : {1, 2, 3, 4, 12, 24}) {
    for (const int64_t micro : {1, 2, 4, 8}) {
      if (24 % (ranks * micro) != 0) continue;
      std::vector<bool> seen(24);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Share share = {.global_batch = 24, .micro_batch = micro, .ranks = ranks, .rank = rank};
        for (int64_t m = 0; m < share.micro_batches(5); ++m) {
          Batch batch(micro, 4);
          sampler.fill(share.first_sample(5, m), batch.view());
          for (int64_t i = 0; i < micro; ++i) {
            const auto place = static_cast<size_t>(share.place(m) + i);
            EXPECT_FALSE(seen[place]);
            seen[place] = true;
            for (size_t k = 0; k < 4; ++k) {
              ASSERT_EQ(batch.tokens[static_cast<size_t>(i) * 4 + k], whole.tokens[place * 4 + k]);
            }
          }
        }
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 24);
    }
  }
}

// As for the permutation: a resumed run must see what it would have seen.
TEST(Sampler, NeverChanges) {
  const data::TestFolder folder;
  const Sampler sampler({{counting_file(folder, "a", 1000), 0.75}, {counting_file(folder, "b", 100), 0.25}},
                        {.sequence = 10, .seed = 7});
  const std::vector<std::vector<uint64_t>> expected = {{0, 0, 0, 59, 761},   {1, 0, 0, 13, 301},
                                                       {2, 1, 0, 8, 6},      {3, 0, 0, 10, 271},
                                                       {100, 0, 0, 35, 521}, {1000000, 0, 7500, 3, 179}};
  for (const std::vector<uint64_t>& row : expected) {
    const Sampler::Place place = sampler.locate(row[0]);
    EXPECT_EQ((std::vector<uint64_t>{row[0], place.file, place.epoch, place.window, place.start}), row);
  }
}

TEST(Sampler, SeedsAndEpochsDiffer) {
  const data::TestFolder folder;
  const auto file = counting_file(folder, "t", 8000);
  const Sampler a({{file, 1.0}}, {.sequence = 8, .seed = 1});
  const Sampler b({{file, 1.0}}, {.sequence = 8, .seed = 2});
  int same_seed = 0;
  int same_epoch = 0;
  int phases = 0;
  for (uint64_t n = 0; n < 1000; ++n) {
    same_seed += a.locate(n).start == b.locate(n).start;
    same_epoch += a.locate(n).start == a.locate(n + 1000).start;
    phases += a.locate(n * 1000).start % 8 != a.locate(0).start % 8;
  }
  EXPECT_LT(same_seed, 10);
  EXPECT_LT(same_epoch, 10);
  EXPECT_GT(phases, 800);  // offsets are any token, not multiples of the sequence
}

TEST(Sampler, DocumentsStayApart) {
  const data::TestFolder folder;
  data::write_tokens(folder / "t", {{1, 2, 3}, {}, {4}, {5, 6, 7, 8, 9, 10}});
  const data::TokenFile file(folder / "t");
  Batch batch(1, 10, true);
  fill_window(file, 1, {.wrap = true, .reset_at_document = true}, batch.view());
  EXPECT_EQ(batch.tokens, (std::vector<int32_t>{2, 3, 4, 5, 6, 7, 8, 9, 10, 1}));
  EXPECT_EQ(batch.labels, (std::vector<int32_t>{3, -1, -1, 6, 7, 8, 9, 10, -1, 2}));
  EXPECT_EQ(batch.starts, (std::vector<int32_t>{0, 0, 2, 3, 3, 3, 3, 3, 3, 9}));
  fill_window(file, 1, {.wrap = true}, batch.view());
  EXPECT_EQ(batch.labels, (std::vector<int32_t>{3, 4, 5, 6, 7, 8, 9, 10, -1, 2}));
  EXPECT_EQ(batch.starts, std::vector<int32_t>(10, 0));
  Batch end_of_document(1, 3, true);  // the row ends where the document does
  fill_window(file, 0, {.wrap = true, .reset_at_document = true}, end_of_document.view());
  EXPECT_EQ(end_of_document.labels, (std::vector<int32_t>{2, 3, -1}));
  fill_window(file, 7, {.reset_at_document = true}, batch.view());  // no ring: padding
  EXPECT_EQ(batch.tokens, (std::vector<int32_t>{8, 9, 10, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(batch.labels, (std::vector<int32_t>{9, 10, -1, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(batch.starts, (std::vector<int32_t>{0, 0, 0, 3, 3, 3, 3, 3, 3, 3}));
}

TEST(Sampler, Errors) {
  const data::TestFolder folder;
  const auto file = counting_file(folder, "t", 8);
  EXPECT_EQ(data::error_of([&] {
              Sampler sampler({{file, 1.0}}, {.sequence = 8});
            }),
            "[data] \"" + folder.text("t.bin") +
                "\" has 8 tokens, and one sample of sequence 8 needs 9; a shorter sequence or more text would do");
  const Sampler sampler({{file, 1.0}}, {.sequence = 7, .vocab_size = 7});
  Batch batch(8, 7);
  EXPECT_EQ(
      data::error_of([&] { sampler.fill(0, batch.view()); }),
      "[data] \"" + folder.text("t.bin") +
          "\" holds the id 7 as token 7, and the vocabulary has 7: it is damaged, or made with another tokenizer");
  EXPECT_EQ(data::error_of([&] { require_even({.global_batch = 10, .micro_batch = 2, .ranks = 4}); }),
            "[data] global_batch 10 is not a multiple of micro_batch 2 times 4 data ranks");
}

TEST(EvaluationSampler, PredictsEveryTokenButTheFirst) {
  const data::TestFolder folder;
  for (const int32_t tokens : {2, 8, 9, 10, 100}) {
    const EvaluationSampler sampler(counting_file(folder, "t", tokens), {.sequence = 8});
    EXPECT_EQ(sampler.num_samples(), static_cast<uint64_t>((tokens - 1 + 7) / 8));
    const auto rows = static_cast<int64_t>(sampler.num_samples()) + 2;  // two after the end
    Batch batch(rows, 8);
    sampler.fill(0, batch.view());
    int32_t next = 1;
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      if (batch.labels[i] == kIgnored) continue;
      EXPECT_EQ(batch.labels[i], next++);
      EXPECT_EQ(batch.tokens[i], batch.labels[i] - 1);
    }
    EXPECT_EQ(next, tokens);
  }
  EXPECT_EQ(data::error_of([&] { EvaluationSampler sampler(counting_file(folder, "t", 1), {.sequence = 8}); }),
            "[data] \"" + folder.text("t.bin") + "\" has 1 tokens; an evaluation needs at least 2");
}

}  // namespace kintsugi::samples::sampler_test
