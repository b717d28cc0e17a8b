#include "kintsugi/evaluate/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "kintsugi/kernels/random.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::evaluate::draw_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

// With few distinct values, so that many are equal.
std::vector<float> random_logits(size_t n, uint64_t seed) {
  std::vector<float> logits(n);
  for (size_t i = 0; i < n; ++i)
    logits[i] = static_cast<float>(kernels::random_word(kernels::random_key(seed, "logits"), 0, i) % 50) / 10;
  return logits;
}

TEST(Sample, WithoutTemperatureIsTheFirstOfTheLargest) {
  for (const size_t n : {1, 2, 7, 8, 9, 255, 256, 257, 263, 1000})
    for (const uint64_t seed : {1, 2, 3}) {
      const std::vector<float> logits = random_logits(n, seed);
      const auto wanted = std::max_element(logits.begin(), logits.end()) - logits.begin();
      EXPECT_EQ(sample(logits, {.temperature = 0}, 5), wanted) << n;
      EXPECT_EQ(sample(logits, {.temperature = 1, .top_k = 1}, 5), wanted) << n;
    }
  for (size_t at = 0; at < 300; ++at) {
    std::vector<float> logits(300, -3.0f);
    logits[at] = -2.0f;
    EXPECT_EQ(sample(logits, {.temperature = 0}, 0), at);
  }
}

TEST(Sample, WithoutTemperatureBearsWhatIsNoNumber) {
  std::vector<float> logits(300, kNan);
  EXPECT_EQ(sample(logits, {.temperature = 0}, 0), 0);
  logits[270] = 1;
  EXPECT_EQ(sample(logits, {.temperature = 0}, 0), 270);
  EXPECT_EQ(sample(std::vector<float>(300, -kInfinity), {.temperature = 0}, 0), 0);
}

TEST(Sample, DrawsAmongTheLargest) {
  const std::vector<float> logits = random_logits(400, 4);
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  for (const int k : {2, 7, 399}) {
    std::set<int32_t> drawn;
    for (uint64_t number = 0; number < 20000; ++number)
      drawn.insert(sample(logits, {.temperature = 5, .top_k = k}, number));
    EXPECT_EQ(drawn, std::set<int32_t>(ids.begin(), ids.begin() + k));
  }
}

// The result of scoring every id in full.
TEST(Sample, DrawsTheLargestScore) {
  for (const double temperature : {0.01, 0.3, 1.0, 50.0})
    for (const int64_t top_k : {0, 50, 2999}) {
      std::vector<float> logits = random_logits(3000, 5);
      for (size_t i = 0; i < 1000; ++i) logits[i * 3] += static_cast<float>(i) * 1e-4f;
      logits[17] = -kInfinity;
      std::vector<int32_t> ids(logits.size());
      std::iota(ids.begin(), ids.end(), 0);
      std::ranges::stable_sort(ids, [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
      if (top_k > 0) ids.resize(static_cast<size_t>(top_k));
      const auto key = kernels::random_key(7, "generate");
      for (uint64_t number = 0; number < 100; ++number) {
        const auto score = [&](int32_t id) {
          const double u = (kernels::random_word(key, 3, (number << 32) + static_cast<uint64_t>(id)) + 0.5) * 0x1p-32;
          return logits[id] / temperature - std::log(-std::log(u));
        };
        const int32_t drawn = sample(logits, {.temperature = temperature, .top_k = top_k, .seed = 7}, number, 3);
        EXPECT_EQ(std::ranges::count(ids, drawn), 1);
        for (const int32_t id : ids)
          EXPECT_LE(score(id), score(drawn) + 1e-9 / temperature) << id << " instead of " << drawn;
      }
    }
}

// Logits rounded to bf16 nearly always give the same id: one in a hundred may differ, not half of them.
TEST(Sample, HardlyDependsOnRounding) {
  std::vector<float> exact(50000), rounded(exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    exact[i] = 4 * static_cast<float>(kernels::normal_pair(kernels::random_key(8, "logits"), i)[0]);
    rounded[i] = static_cast<float>(tensor::bf16(exact[i]));
  }
  int others = 0;
  for (uint64_t number = 0; number < 300; ++number) others += sample(exact, {}, number) != sample(rounded, {}, number);
  EXPECT_GT(others, 0);
  EXPECT_LT(others, 9);
}

TEST(Sample, BearsEveryTemperature) {
  const std::vector<float> logits = random_logits(600, 6), equal(600, 1.5f);
  const int32_t first = sample(logits, {.temperature = 0}, 0);
  for (const double temperature : {1e-300, 1e-40, 1e-3, 1e10, 1e300})
    for (uint64_t number = 0; number < 50; ++number) {
      const int32_t drawn = sample(logits, {.temperature = temperature}, number);
      if (temperature < 1e-2) {
        EXPECT_EQ(logits[static_cast<size_t>(drawn)], logits[static_cast<size_t>(first)]);
      }
      EXPECT_LT(sample(equal, {.temperature = temperature}, number), 600);
    }
}

// Counts of 40,000 samples are within five standard deviations of softmax.
TEST(Sample, FollowsTheProbabilities) {
  const std::vector<float> logits = {0.5f, -1.0f, 2.0f, -kInfinity, 1.0f};
  for (const int top_k : {0, 3})
    for (const double temperature : {0.7, 1.0, 3.0}) {
      std::vector<double> wanted(logits.size()), counts(logits.size());
      for (size_t i = 0; i < logits.size(); ++i)
        wanted[i] = top_k == 3 && i == 1 ? 0 : std::exp(logits[i] / temperature);
      const double total = std::accumulate(wanted.begin(), wanted.end(), 0.0);
      constexpr int kDraws = 40000;
      for (int i = 0; i < kDraws; ++i)
        ++counts[static_cast<size_t>(
            sample(logits, {.temperature = temperature, .top_k = top_k, .seed = 3}, static_cast<uint64_t>(i), 2))];
      for (size_t i = 0; i < logits.size(); ++i) {
        const double p = wanted[i] / total;
        EXPECT_NEAR(counts[i], p * kDraws, 5 * std::sqrt(p * kDraws)) << i << " at " << temperature;
      }
    }
}

// The ids that can be sampled, over many samples.
std::set<int32_t> drawn_ids(std::span<const float> logits, const SampleOptions& options, uint64_t draws = 3000) {
  std::set<int32_t> ids;
  for (uint64_t i = 0; i < draws; ++i) ids.insert(sample(logits, options, i));
  return ids;
}

TEST(Sample, TopPAndMinPLeaveOutTheUnlikely) {
  // Probabilities 0.4, 0.3, 0.2, 0.1.
  const std::vector<float> logits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f), -kInfinity};
  EXPECT_EQ(drawn_ids(logits, {.top_p = 0.39}), (std::set<int32_t>{1}));
  EXPECT_EQ(drawn_ids(logits, {.top_p = 0.65}), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(drawn_ids(logits, {.top_p = 0.85}), (std::set<int32_t>{1, 2, 3}));
  EXPECT_EQ(drawn_ids(logits, {.top_p = 0.95}), (std::set<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(drawn_ids(logits, {.top_k = 2, .top_p = 0.95}), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(drawn_ids(logits, {.top_k = 3, .top_p = 0.7}), (std::set<int32_t>{1, 3}));  // of what top_k leaves
  EXPECT_EQ(drawn_ids(logits, {.min_p = 0.8}), (std::set<int32_t>{1}));
  EXPECT_EQ(drawn_ids(logits, {.min_p = 0.45}), (std::set<int32_t>{1, 2, 3}));
  EXPECT_EQ(drawn_ids(logits, {.temperature = 0.5, .min_p = 0.45}), (std::set<int32_t>{1, 3}));  // after temperature
  EXPECT_EQ(sample(logits, {.top_p = 1.0, .min_p = 0.0}, 7), sample(logits, {}, 7));
}

// The threshold does not depend on how many ids are sorted at a time.
TEST(Sample, TopPOfManyIdsIsThatOfAllSorted) {
  const std::vector<float> logits = random_logits(3000, 4);
  std::vector<double> p(logits.begin(), logits.end());
  for (double& x : p) x = std::exp(x);
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (const double top_p : {0.001, 0.3, 0.9}) {
    std::vector<size_t> order(p.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
    std::set<int32_t> allowed;
    for (double sum = 0; sum < top_p * total;) {
      const size_t id = order[allowed.size()];
      sum += p[id];
      allowed.insert(static_cast<int32_t>(id));
    }
    for (const int32_t id : drawn_ids(logits, {.top_p = top_p}, 200)) EXPECT_TRUE(allowed.contains(id)) << id;
  }
}

TEST(Sample, PenaltiesAndBiasChangeTheLogits) {
  const std::vector<float> logits = {2, -2, 1, 0.5, 0};
  const Logits given = {logits.data(), 5, tensor::DType::f32};
  const std::vector<int32_t> ids = {0, 1, 0, 2, 2};  // two of them a prompt
  EXPECT_EQ(changed_logits(given, {.repetition_penalty = 2}, ids, 2), (std::vector<float>{1, -4, 0.5, 0.5, 0}));
  EXPECT_EQ(changed_logits(given, {.presence_penalty = 0.5}, ids, 2), (std::vector<float>{1.5, -2, 0.5, 0.5, 0}));
  EXPECT_EQ(changed_logits(given, {.frequency_penalty = 0.5}, ids, 2), (std::vector<float>{1.5, -2, 0, 0.5, 0}));
  EXPECT_EQ(changed_logits(given, {.logit_bias = {{4, 3}, {0, -1}, {9, 1}}}, ids, 2),
            (std::vector<float>{1, -2, 1, 0.5, 3}));
  EXPECT_EQ(sample_next(given, {.temperature = 0, .logit_bias = {{4, 3}}}, ids, 2, 0), 4);
  EXPECT_EQ(sample_next(given, {.temperature = 0, .repetition_penalty = 8}, ids, 2, 0), 3);
  EXPECT_EQ(sample_next(given, {.seed = 3}, ids, 2, 1), sample(logits, {.seed = 3}, 3, 1));
}

}  // namespace
}  // namespace kintsugi::evaluate::draw_test
