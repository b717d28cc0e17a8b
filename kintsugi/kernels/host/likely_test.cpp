#include "kintsugi/kernels/host/likely.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kintsugi/kernels/random.h"

namespace kintsugi::kernels::host::likely_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kSizes[] = {1, 2, 7, 15, 16, 17, 63, 64, 65, 1000, 1023, 1024, 1025, 4100};

// Normal scores, some of them equal; some that cannot win.
template <typename T>
std::vector<T> random_logits(int64_t n, uint64_t seed) {
  std::vector<T> x;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<uint64_t>(i);
    const uint32_t word = random_word(random_key(seed, "kinds"), 0, at);
    const auto drawn = static_cast<float>(3 * normal_pair(random_key(seed, "logits"), at)[0]);
    x.push_back(T(word % 37 == 0 ? -kInfinity : word % 41 == 0 ? kNan : word % 3 == 0 ? std::round(drawn) : drawn));
  }
  return x;
}

template <typename T>
Logits of(const std::vector<T>& x, tensor::DType dtype) {
  return {x.data(), std::ssize(x), dtype};
}

// Those above -infinity, the largest first.
std::vector<int64_t> sorted(const Logits& x) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < x.count; ++i)
    if (x[i] > -kInfinity) places.push_back(i);
  std::ranges::stable_sort(places, [&](int64_t a, int64_t b) { return x[a] > x[b]; });
  return places;
}

int64_t draw_slowly(const Logits& x, double scale, const Noise& noise, const std::vector<int64_t>& some) {
  const double top = x[sorted(x)[0]];
  double best = -std::numeric_limits<double>::infinity();
  int64_t found = -1;
  for (const int64_t i : some) {
    const double u = (random_word(noise.key, noise.stream, 4 * noise.block + static_cast<uint64_t>(i)) + 0.5) * 0x1p-32;
    const double score = (x[i] - top) * scale - std::log(-std::log(u));
    if (score > best) best = score, found = i;
  }
  return found;
}

template <typename F>
void for_logits(const F& f) {
  for (const int64_t n : kSizes)
    for (const uint64_t seed : {1, 2, 3}) {
      const auto wide = random_logits<float>(n, seed);
      const auto half = random_logits<tensor::bf16>(n, seed);
      const auto other = random_logits<tensor::f16>(n, seed);
      for (const Logits& x :
           {of(wide, tensor::DType::f32), of(half, tensor::DType::bf16), of(other, tensor::DType::f16)})
        if (!sorted(x).empty()) f(x);
    }
}

TEST(Likely, TheLargestFirst) {
  for_logits([](const Logits& x) {
    const std::vector<int64_t> wanted = sorted(x);
    EXPECT_EQ(most_likely(x), wanted[0]);
    for (const int64_t k : {1, 2, 5, 50, 700}) {
      const auto some = std::min(k, std::ssize(wanted));
      EXPECT_EQ(most_likely(x, k), std::vector<int64_t>(wanted.begin(), wanted.begin() + some))
          << k << " of " << x.count;
    }
  });
}

TEST(Likely, ThoseWithoutALargest) {
  for (const float x : {kNan, -kInfinity})
    for (const int64_t n : kSizes) {
      const std::vector<float> all(static_cast<size_t>(n), x);
      EXPECT_EQ(most_likely(of(all, tensor::DType::f32)), 0);
      EXPECT_TRUE(most_likely(of(all, tensor::DType::f32), 3).empty());
      EXPECT_EQ(draw(of(all, tensor::DType::f32), 1, {}), 0);
    }
}

// Equals scoring every id in full.
TEST(Likely, DrawsAreThoseOfAllScores) {
  uint64_t block = (uint64_t{1} << 32) - 100;  // whose lower half overflows meanwhile
  for_logits([&](const Logits& x) {
    std::vector<int64_t> all(static_cast<size_t>(x.count));
    std::iota(all.begin(), all.end(), 0);
    for (const double scale : {0.0, 1e-300, 0.1, 1.0, 3.0, 200.0, 1e30, 1e300}) {
      const Noise noise = {random_key(9, "generate"), 5, block++};
      EXPECT_EQ(draw(x, scale, noise), draw_slowly(x, scale, noise, all)) << scale << " of " << x.count;
      const std::vector<int64_t> some = most_likely(x, 40);
      EXPECT_EQ(draw(x, scale, noise, some), draw_slowly(x, scale, noise, some)) << scale << " of " << x.count;
    }
  });
}

}  // namespace
}  // namespace kintsugi::kernels::host::likely_test
