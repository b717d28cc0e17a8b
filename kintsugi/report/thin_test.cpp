#include "kintsugi/report/thin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kintsugi::report::thin_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Series {
  std::vector<double> x, y;
};

Series made(size_t count) {
  Series s;
  for (size_t i = 0; i < count; ++i) {
    s.x.push_back(static_cast<double>(i + 1));
    s.y.push_back(std::sin(static_cast<double>(i) * 0.37) + static_cast<double>(i % 7));
  }
  return s;
}

}  // namespace

TEST(Thin, FewPointsStay) {
  const Series s = made(50);
  const std::vector<Point> all = thin(s.x, s.y, 10);
  ASSERT_EQ(all.size(), 50u);
  for (size_t i = 0; i < 50; ++i) EXPECT_TRUE(all[i].x == s.x[i] && all[i].y == s.y[i]) << i;
  EXPECT_TRUE(thin({}, {}, 10).empty());
  EXPECT_EQ(thin(std::vector{3.0}, std::vector{4.0}, 10).size(), 1u);
}

TEST(Thin, ExtremesAndEndsStay) {
  Series s = made(10'000);
  s.y[1234] = -50;
  s.y[7777] = 80;
  const std::vector<Point> kept = thin(s.x, s.y, 100);
  EXPECT_LE(kept.size(), 400u);
  EXPECT_GE(kept.size(), 200u);
  EXPECT_TRUE(std::ranges::is_sorted(kept, {}, [](const Point& p) { return p.x; }));
  const auto holds = [&](double x, double y) {
    return std::ranges::any_of(kept, [&](const Point& p) { return p.x == x && p.y == y; });
  };
  EXPECT_TRUE(holds(1, s.y[0]));
  EXPECT_TRUE(holds(10'000, s.y[9'999]));
  EXPECT_TRUE(holds(1235, -50));
  EXPECT_TRUE(holds(7778, 80));
  // For every hundredth, not only the whole.
  constexpr double kWidth = 9'999.0 / 100;
  for (int part = 0; part < 100; ++part) {
    Point low = {0, 1e9}, high = {0, -1e9};
    for (size_t i = 0; i < s.x.size(); ++i) {
      if (static_cast<int>(std::min(99.0, std::floor((s.x[i] - 1) / kWidth))) != part) continue;
      if (s.y[i] < low.y) low = {s.x[i], s.y[i]};
      if (s.y[i] > high.y) high = {s.x[i], s.y[i]};
    }
    EXPECT_TRUE(holds(low.x, low.y)) << part;
    EXPECT_TRUE(holds(high.x, high.y)) << part;
  }
}

TEST(Thin, WhatIsNotFiniteIsAGap) {
  Series s = made(10'000);
  s.y[5000] = kNan;
  s.y[5001] = std::numeric_limits<double>::infinity();
  std::fill(s.y.begin() + 2000, s.y.begin() + 3000, kNan);
  const std::vector<Point> kept = thin(s.x, s.y, 100);
  size_t gaps = 0;
  for (const Point& p : kept) {
    gaps += std::isnan(p.y);
    EXPECT_FALSE(std::isinf(p.y));
    if (p.x > 2001 && p.x < 3000) {
      EXPECT_TRUE(std::isnan(p.y)) << p.x;
    }
  }
  EXPECT_GE(gaps, 11u);
  EXPECT_TRUE(std::ranges::any_of(kept, [](const Point& p) { return p.x == 5001 && std::isnan(p.y); }));
}

TEST(Thin, PlacesNeedNotBeEven) {
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8, 1000}, y = {1, 5, 2, 9, 0, 3, 4, 6, 7};
  const std::vector<Point> kept = thin(x, y, 1);
  EXPECT_EQ(kept.size(), 4u);  // the first, 9, 0, the last
  EXPECT_EQ(thin(std::vector<double>(20, 3.0), std::vector<double>(20, 4.0), 2).size(), 20u);  // all at one place
}

TEST(Thin, MovingMean) {
  const std::vector<double> y = {1, 2, 3, kNan, 5, 6};
  EXPECT_EQ(moving_mean(y, 1), (std::vector<double>{1, 2, 2.5, 4, 5.5, 6}));
  EXPECT_EQ(moving_mean(std::vector<double>{1, 2}, 0), (std::vector<double>{1, 2}));
  EXPECT_TRUE(std::isnan(moving_mean(std::vector{kNan, kNan, 1.0}, 1)[0]));
  EXPECT_TRUE(moving_mean({}, 3).empty());
}

}  // namespace kintsugi::report::thin_test
