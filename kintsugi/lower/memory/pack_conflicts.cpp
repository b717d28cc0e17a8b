#include "kintsugi/lower/memory/pack_conflicts.h"

#include <algorithm>
#include <numeric>

#include "kintsugi/base/error.h"

namespace kintsugi::lower {

namespace {

void check(const std::vector<Item>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    base::require(items[i].bytes >= 0, "pack", "item {} has {} bytes", i, items[i].bytes);
    const Interval* before = nullptr;
    for (const Interval& live : items[i].live) {
      base::require(live.begin <= live.end && (!before || before->end < live.begin), "pack",
                    "item {} is live from {} to {}: intervals must be ascending and apart", i, live.begin, live.end);
      before = &live;
    }
  }
}

// Transposes a 64 x 64 bit matrix (Warren, Hacker's Delight, section 7-3), rows and columns counted from bit 0.
void transpose(uint64_t* rows) {
  uint64_t mask = 0x00000000ffffffffULL;
  for (unsigned j = 32; j != 0; j >>= 1, mask ^= mask << j)
    for (unsigned k = 0; k < 64; k = (k + j + 1) & ~j) {
      const uint64_t swapped = ((rows[k] >> j) ^ rows[k + j]) & mask;
      rows[k] ^= swapped << j;
      rows[k + j] ^= swapped;
    }
}

}  // namespace

Timeline timeline_of(const std::vector<Item>& items) {
  check(items);
  Timeline t;
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].bytes > 0 && !items[i].live.empty()) t.item.push_back(static_cast<int>(i));
  std::stable_sort(t.item.begin(), t.item.end(), [&](int a, int b) {
    return items[static_cast<size_t>(a)].live[0].begin < items[static_cast<size_t>(b)].live[0].begin;
  });

  // At the same instant, begins precede ends.
  std::vector<std::pair<int64_t, int>> events;
  for (int i = 0; i < t.size(); ++i) {
    const Item& item = items[static_cast<size_t>(t.item[static_cast<size_t>(i)])];
    t.bytes.push_back(item.bytes);
    t.duration.push_back(0);
    for (const Interval& live : item.live) {
      t.duration.back() += int64_t{live.end} - live.begin + 1;
      events.emplace_back(2 * int64_t{live.begin}, i);
      events.emplace_back(2 * int64_t{live.end} + 1, i);
    }
  }
  std::sort(events.begin(), events.end());

  t.points.resize(t.item.size());
  bool ended = true;
  int64_t now = 0;
  for (const auto& [when, i] : events) {
    std::vector<Interval>& points = t.points[static_cast<size_t>(i)];
    if (when % 2 != 0) {
      ended = true;
      points.back().end = t.num_points - 1;
      now -= t.bytes[static_cast<size_t>(i)];
      continue;
    }
    if (ended) ++t.num_points;
    ended = false;
    if (points.empty() || points.back().end < t.num_points - 2) points.push_back({t.num_points - 1, 0});
    t.lower_bound = std::max(t.lower_bound, now += t.bytes[static_cast<size_t>(i)]);
  }
  return t;
}

Conflicts::Conflicts(const Timeline& t)
    : words_((t.item.size() + 63) / 64), rows_(words_ * words_ * 64, 0), extents_(t.item.size(), {0, 0}) {
  struct Event {
    int point, kind, item;  // kind 0: begins, 1: meets everything live, 2: ends
    auto operator<=>(const Event&) const = default;
  };
  std::vector<Event> events;
  for (int i = 0; i < t.size(); ++i)
    for (const Interval& live : t.points[static_cast<size_t>(i)]) {
      events.push_back({live.begin, 0, i});
      events.push_back({live.begin, 1, i});
      events.push_back({live.end, 2, i});
    }
  std::sort(events.begin(), events.end());
  std::vector<uint64_t> now(words_, 0);  // live items
  for (const Event& e : events) {
    const auto i = static_cast<size_t>(e.item);
    if (e.kind == 1) {
      uint64_t* row = rows_.data() + i * words_;
      for (size_t w = 0; w < words_; ++w) row[w] |= now[w];
    } else {
      now[i / 64] ^= uint64_t{1} << (i % 64);
    }
  }

  // Each row has the items that were live when its item began; now add the transpose.
  uint64_t upper[64], lower[64];
  for (size_t a = 0; a < words_; ++a)
    for (size_t b = a; b < words_; ++b) {
      for (size_t k = 0; k < 64; ++k) {
        upper[k] = rows_[(a * 64 + k) * words_ + b];
        lower[k] = rows_[(b * 64 + k) * words_ + a];
      }
      transpose(lower);
      for (size_t k = 0; k < 64; ++k) upper[k] |= lower[k];
      for (size_t k = 0; k < 64; ++k) rows_[(a * 64 + k) * words_ + b] = lower[k] = upper[k];
      transpose(lower);
      for (size_t k = 0; k < 64; ++k) rows_[(b * 64 + k) * words_ + a] = lower[k];
    }
  for (size_t i = 0; i < t.item.size(); ++i) {
    uint64_t* row = rows_.data() + i * words_;
    row[i / 64] &= ~(uint64_t{1} << (i % 64));
    size_t first = 0, end = words_;
    while (first < end && row[first] == 0) ++first;
    while (end > first && row[end - 1] == 0) --end;
    extents_[i] = {first, end};
  }
}

}  // namespace kintsugi::lower
