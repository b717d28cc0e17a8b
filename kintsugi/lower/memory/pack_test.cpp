#include "kintsugi/lower/memory/pack.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <tuple>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/memory/pack_skyline.h"

namespace kintsugi::lower::pack_test {
namespace {

using Random = std::mt19937;  // its numbers are the same everywhere; those of distributions are not

int draw(Random& random, int from, int to) {  // inclusive
  return from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1));
}

// Up to `most` disjoint intervals of up to `length` instants within [0, instants).
std::vector<Interval> draw_intervals(Random& random, int instants, int most, int length) {
  std::vector<Interval> live;
  int count = draw(random, 1, most);
  for (int at = draw(random, 0, instants - 1); count > 0 && at < instants; --count) {
    const int end = std::min(instants - 1, at + draw(random, 0, length - 1));
    live.push_back({at, end});
    at = end + 1 + draw(random, 0, instants / 3);
  }
  return live;
}

std::vector<Item> draw_items(Random& random, int count, int instants, int most, int length, int sizes) {
  std::vector<Item> items;
  for (int i = 0; i < count; ++i)
    items.push_back({64 * int64_t{draw(random, 1, sizes)}, draw_intervals(random, instants, most, length)});
  return items;
}

// Slow and simple: at each instant, all pairs of live items.
void check_each_instant(const std::vector<Item>& items, const Packing& p) {
  ASSERT_EQ(p.offsets.size(), items.size());
  int last = 0;
  int64_t top = 0, most = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_GE(p.offsets[i], 0);
    ASSERT_EQ(p.offsets[i] % 64, 0);
    top = std::max(top, p.offsets[i] + items[i].bytes);
    for (const Interval& live : items[i].live) last = std::max(last, live.end);
  }
  for (int at = 0; at <= last; ++at) {
    std::vector<size_t> now;
    int64_t sum = 0;
    for (size_t i = 0; i < items.size(); ++i)
      for (const Interval& live : items[i].live)
        if (live.begin <= at && at <= live.end) {
          now.push_back(i);
          sum += items[i].bytes;
        }
    most = std::max(most, sum);
    for (size_t a : now)
      for (size_t b : now) {
        const bool apart =
            p.offsets[a] + items[a].bytes <= p.offsets[b] || p.offsets[b] + items[b].bytes <= p.offsets[a];
        ASSERT_TRUE(a == b || apart) << "items " << a << " and " << b << " at " << at;
      }
  }
  ASSERT_EQ(p.lower_bound, most);
  ASSERT_EQ(p.bytes, top);
  ASSERT_GE(p.bytes, p.lower_bound);
}

// For many items: along time, live items by offset; each starts after the previous one and ends before the next.
void check_along_time(const std::vector<Item>& items, const std::vector<int64_t>& offsets) {
  std::vector<std::tuple<int, int, size_t>> events;  // begins before ends
  for (size_t i = 0; i < items.size(); ++i)
    for (const Interval& live : items[i].live) {
      events.emplace_back(live.begin, 0, i);
      events.emplace_back(live.end, 1, i);
    }
  std::sort(events.begin(), events.end());
  std::map<int64_t, int64_t> now;  // what is live: end, by offset
  for (const auto& [at, ends, i] : events) {
    if (ends) {
      now.erase(offsets[i]);
      continue;
    }
    const auto [place, fresh] = now.emplace(offsets[i], offsets[i] + items[i].bytes);
    ASSERT_TRUE(fresh) << "item " << i << " at " << at;
    ASSERT_TRUE(place == now.begin() || std::prev(place)->second <= place->first) << "item " << i << " at " << at;
    ASSERT_TRUE(std::next(place) == now.end() || place->second <= std::next(place)->first)
        << "item " << i << " at " << at;
  }
}

// The best of all orders, each item at the lowest free offset: some order gives an optimal packing.
int64_t optimum(const std::vector<Item>& items) {
  const auto meet = [&](size_t a, size_t b) {
    for (const Interval& x : items[a].live)
      for (const Interval& y : items[b].live)
        if (x.begin <= y.end && y.begin <= x.end) return true;
    return false;
  };
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = std::numeric_limits<int64_t>::max();
  do {
    std::vector<int64_t> offsets(items.size(), 0);
    int64_t top = 0;
    for (size_t n = 0; n < order.size(); ++n) {
      const size_t i = order[n];
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t m = 0; m < n; ++m) {
          const size_t j = order[m];
          if (!meet(i, j) || offsets[i] + items[i].bytes <= offsets[j] || offsets[j] + items[j].bytes <= offsets[i])
            continue;
          offsets[i] = offsets[j] + items[j].bytes;
          moved = true;
        }
      }
      top = std::max(top, offsets[i] + items[i].bytes);
    }
    best = std::min(best, top);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

// A training step: kept activations are live until the backward pass of their layer; temporaries and gathered weights
// live briefly; gradients flow from layer to layer; logits in the middle.
std::vector<Item> step_like(Random& random, int layers, int operations) {
  std::vector<Item> items;
  const int half = layers * operations, all = 2 * half + 2;
  const auto odd = [&](int n) { return 64 * int64_t{draw(random, n / 2, n)}; };
  for (int l = 0; l < layers; ++l) {
    const int64_t residual = 64 * 512;
    const int forward = l * operations, backward = all - (l + 1) * operations;
    items.push_back({residual, {{forward, backward + operations - 1}}});
    items.push_back({odd(3000), {{forward, forward + operations - 1}}});    // gathered weights
    items.push_back({odd(3000), {{backward, backward + operations - 1}}});  // and once more
    items.push_back({odd(3000), {{backward + operations / 2, std::min(all - 1, backward + operations + 2)}}});
    for (int k = 0; k < operations; ++k) {
      const int again = backward + operations - 1 - k;
      if (k % 3 == 0) items.push_back({odd(1500), {{forward + k, again}}});
      items.push_back({odd(2000), {{forward + k, std::min(half, forward + k + draw(random, 1, 3))}}});
      items.push_back({odd(2000), {{again, std::min(all - 1, again + draw(random, 1, 4))}}});
    }
  }
  items.push_back({64 * 9001, {{half - 1, half + 1}}});
  return items;
}

// CPU time, regardless of other programs.
double seconds(const std::function<void()>& f) {
  const std::clock_t start = std::clock();
  f();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace

TEST(Pack, NothingToPack) {
  const Packing none = pack({});
  EXPECT_TRUE(none.offsets.empty());
  EXPECT_EQ(none.bytes, 0);
  EXPECT_EQ(none.lower_bound, 0);
  const std::vector<Item> empty = {{0, {{0, 5}}}, {0, {{2, 3}}}};
  EXPECT_EQ(pack(empty).bytes, 0);
  check_each_instant(empty, pack(empty));
  // An item that is never live has an offset, and shares its bytes with all.
  const Packing p = pack({{128, {}}, {64, {{0, 0}}}});
  EXPECT_EQ(p.offsets, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(p.bytes, 128);
  EXPECT_EQ(p.lower_bound, 64);
}

TEST(Pack, OneInstant) {
  const std::vector<Item> items = {{64, {{7, 7}}}, {192, {{7, 7}}}, {0, {{7, 7}}}, {128, {{7, 7}}}};
  const Packing p = pack(items);
  check_each_instant({{64, {{7, 7}}}, {192, {{7, 7}}}, {0, {}}, {128, {{7, 7}}}}, p);
  EXPECT_EQ(p.bytes, 384);
  EXPECT_EQ(p.lower_bound, 384);
}

TEST(Pack, IntervalsAreInclusive) {
  EXPECT_EQ(pack({{64, {{0, 1}}}, {64, {{1, 2}}}}).bytes, 128);
  EXPECT_EQ(pack({{64, {{0, 1}}}, {64, {{2, 3}}}}).bytes, 64);
}

TEST(Pack, AnItemServesAgain) {
  // The second is live in the gap of the first.
  EXPECT_EQ(pack({{64, {{0, 1}, {4, 5}}}, {64, {{2, 3}}}}).bytes, 64);
  // Each overlaps each, but never all three: more than is live at any instant.
  const Packing p = pack({{64, {{0, 0}, {4, 4}}}, {64, {{0, 0}, {2, 2}}}, {64, {{2, 2}, {4, 4}}}});
  EXPECT_EQ(p.bytes, 192);
  EXPECT_EQ(p.lower_bound, 128);
}

TEST(Pack, WhatIsRefused) {
  const auto error = [](const std::vector<Item>& items) {
    try {
      pack(items);
    } catch (const base::InternalError& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(error({{64, {{0, 1}}}, {64, {{3, 2}}}}),
            "[pack] internal error: item 1 is live from 3 to 2: intervals must be ascending and apart");
  EXPECT_EQ(error({{64, {{4, 6}, {6, 8}}}}),
            "[pack] internal error: item 0 is live from 6 to 8: intervals must be ascending and apart");
  EXPECT_EQ(error({{-64, {{4, 6}}}}), "[pack] internal error: item 0 has -64 bytes");
}

TEST(Pack, RandomItemsDoNotOverlap) {
  Random random(1);
  for (int trial = 0; trial < 3000; ++trial) {
    const int instants = draw(random, 1, 40);
    const std::vector<Item> items = draw_items(random, draw(random, 1, 24), instants, draw(random, 1, 4),
                                               draw(random, 1, instants), draw(random, 1, 30));
    const Packing p = pack(items);
    check_each_instant(items, p);
    if (HasFatalFailure()) FAIL() << "trial " << trial;
  }
}

TEST(Pack, MoreItemsThanAWordHasBits) {
  Random random(2);
  for (int count : {63, 64, 65, 127, 128, 129, 300}) {
    const std::vector<Item> items = draw_items(random, count, 200, 3, 60, 100);
    check_each_instant(items, pack(items));
    if (HasFatalFailure()) FAIL() << count << " items";
  }
}

TEST(Pack, TinyItemsArePackedBest) {
  Random random(3);
  int best = 0, above_bound = 0;
  constexpr int kTrials = 400;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<Item> items = draw_items(random, draw(random, 4, 7), 10, 2, 5, 9);
    const Packing p = pack(items);
    const int64_t least = optimum(items);
    ASSERT_GE(p.bytes, least) << "trial " << trial;
    best += p.bytes == least;
    above_bound += least > p.lower_bound;
  }
  EXPECT_EQ(best, kTrials);
  EXPECT_GE(above_bound, 10);  // so that the bound alone does not say what is best
}

TEST(Pack, TheSameAgain) {
  Random random(4);
  const std::vector<Item> items = draw_items(random, 500, 300, 4, 40, 1000);
  const Packing first = pack(items), second = pack(items);
  EXPECT_GT(first.bytes, first.lower_bound);  // so that the search went to its end
  EXPECT_EQ(first.offsets, second.offsets);
  EXPECT_EQ(first.bytes, second.bytes);
}

TEST(Pack, TrainingStepsAreWithinThreePercent) {
  Random random(5);
  double worst = 1;
  for (int trial = 0; trial < 12; ++trial) {
    const std::vector<Item> items = step_like(random, draw(random, 2, 12), draw(random, 6, 14));
    const Packing p = pack(items);
    check_each_instant(items, p);
    const double ratio = static_cast<double>(p.bytes) / static_cast<double>(p.lower_bound);
    EXPECT_LE(ratio, 1.03) << "trial " << trial;
    worst = std::max(worst, ratio);
  }
  RecordProperty("worst", fmt::format("{:.4f}", worst));
}

TEST(Pack, ManyItemsInTime) {
  Random random(6);
  std::vector<Item> items = draw_items(random, 2000, 10000, 4, 800, 5000);
  Packing p;
  EXPECT_LT(seconds([&] { p = pack(items); }), 1.0);
  check_along_time(items, p.offsets);
  items = draw_items(random, 20000, 100000, 4, 8000, 5000);
  EXPECT_LT(seconds([&] { p = pack(items); }), 10.0);
  check_along_time(items, p.offsets);
}

TEST(Pack, MoreItemsThanTheMatrixHolds) {
  Random random(7);
  const std::vector<Item> items = draw_items(random, 40000, 100000, 2, 500, 5000);
  Packing p;
  EXPECT_LT(seconds([&] { p = pack(items); }), 10.0);
  check_along_time(items, p.offsets);
  EXPECT_LT(static_cast<double>(p.bytes), 1.6 * static_cast<double>(p.lower_bound));
}

TEST(Pack, Skyline) {
  Random random(8);
  for (int trial = 0; trial < 500; ++trial) {
    const std::vector<Item> items = draw_items(random, draw(random, 1, 100), 60, 3, 30, 30);
    const Timeline t = timeline_of(items);
    const std::vector<int64_t> offsets = pack_skyline(t);
    Packing p = {.offsets = std::vector<int64_t>(items.size()), .lower_bound = t.lower_bound};
    for (size_t i = 0; i < offsets.size(); ++i) {
      p.offsets[static_cast<size_t>(t.item[i])] = offsets[i];
      p.bytes = std::max(p.bytes, offsets[i] + t.bytes[i]);
    }
    check_each_instant(items, p);
    if (HasFatalFailure()) FAIL() << "trial " << trial;
  }
}

}  // namespace kintsugi::lower::pack_test
