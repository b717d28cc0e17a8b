#include "kintsugi/tensor/split.h"

#include <gtest/gtest.h>

#include <vector>

namespace kintsugi::tensor::split_test {
namespace {

using Segments = std::vector<Segment>;
using Positions = std::vector<int64_t>;

Segments cut(int64_t size, const std::vector<std::pair<Cut, int64_t>>& cuts) {
  Segments s = {{0, size}};
  for (const auto& [c, part] : cuts) s = cut_segments(s, c, part);
  return s;
}

// The same by definition: a list of positions, padded to whole chunks, from which a part takes its own.
Positions slow_cut(Positions from, const Cut& cut, int64_t part) {
  const int64_t chunks = cut.zigzag ? 2 * cut.parts : cut.parts;
  while (static_cast<int64_t>(from.size()) % chunks != 0) from.push_back(-1);
  const auto chunk = static_cast<int64_t>(from.size()) / chunks;
  Positions mine(from.begin() + part * chunk, from.begin() + (part + 1) * chunk);
  if (cut.zigzag) mine.insert(mine.end(), from.end() - (part + 1) * chunk, from.end() - part * chunk);
  return mine;
}

Positions positions(const Segments& segments) {
  Positions list;
  for (const Segment& s : segments)
    for (int64_t i = 0; i < s.count; ++i) list.push_back(s.global < 0 ? -1 : s.global + i);
  return list;
}

}  // namespace

TEST(Split, Contiguous) {
  EXPECT_EQ(cut(12, {{{3}, 1}}), (Segments{{4, 4}}));
  EXPECT_EQ(cut(12, {{{1}, 0}}), (Segments{{0, 12}}));
  EXPECT_EQ(cut(3, {{{3}, 2}}), (Segments{{2, 1}}));
}

TEST(Split, PaddedAtTheEnd) {
  EXPECT_EQ(length_after(65, {4}), 17);
  EXPECT_EQ(cut(65, {{{4}, 0}}), (Segments{{0, 17}}));
  EXPECT_EQ(cut(65, {{{4}, 3}}), (Segments{{51, 14}, {-1, 3}}));
  EXPECT_EQ(cut(5, {{{4}, 2}}), (Segments{{4, 1}, {-1, 1}}));
  EXPECT_EQ(cut(5, {{{4}, 3}}), (Segments{{-1, 2}}));
  EXPECT_EQ(cut(0, {{{2}, 1}}), Segments{});
}

TEST(Split, Nests) {
  // 65 over 2 x 2 is 33, then 17.
  EXPECT_EQ(length_after(65, {2}), 33);
  EXPECT_EQ(length_after(33, {2}), 17);
  EXPECT_EQ(cut(65, {{{2}, 0}, {{2}, 0}}), (Segments{{0, 17}}));
  EXPECT_EQ(cut(65, {{{2}, 0}, {{2}, 1}}), (Segments{{17, 16}, {-1, 1}}));
  EXPECT_EQ(cut(65, {{{2}, 1}, {{2}, 0}}), (Segments{{33, 17}}));
  EXPECT_EQ(cut(65, {{{2}, 1}, {{2}, 1}}), (Segments{{50, 15}, {-1, 2}}));
}

TEST(Split, Zigzag) {
  EXPECT_EQ(cut(16, {{{2, true}, 0}}), (Segments{{0, 4}, {12, 4}}));
  EXPECT_EQ(cut(16, {{{2, true}, 1}}), (Segments{{4, 8}}));  // its chunks are neighbours
  EXPECT_EQ(cut(12, {{{3, true}, 1}}), (Segments{{2, 2}, {8, 2}}));
  EXPECT_EQ(length_after(7, {2, true}), 4);
  EXPECT_EQ(cut(7, {{{2, true}, 0}}), (Segments{{0, 2}, {6, 1}, {-1, 1}}));
  // Balanced causal work: the sum of positions is equal in all parts.
  for (int64_t part = 0; part < 4; ++part) {
    int64_t sum = 0;
    for (int64_t p : positions(cut(64, {{{4, true}, part}}))) sum += p;
    EXPECT_EQ(sum, 64 * 63 / 2 / 4) << part;
  }
}

TEST(Split, ZigzagOfZigzagAndOfParts) {
  EXPECT_EQ(cut(16, {{{2, true}, 0}, {{2, true}, 0}}), (Segments{{0, 2}, {14, 2}}));
  EXPECT_EQ(cut(16, {{{2, true}, 0}, {{2, true}, 1}}), (Segments{{2, 2}, {12, 2}}));
  EXPECT_EQ(cut(16, {{{2, true}, 0}, {{2}, 1}}), (Segments{{12, 4}}));
}

// Every size, pair of cuts and part compared with the definition; each position is in exactly one part.
TEST(Split, AgreesWithTheDefinition) {
  const Cut cuts[] = {{1}, {2}, {3}, {5}, {2, true}, {3, true}};
  for (int64_t size = 0; size <= 40; ++size)
    for (const Cut& a : cuts)
      for (const Cut& b : cuts) {
        std::vector<int> seen(static_cast<size_t>(size));
        for (int64_t i = 0; i < a.parts; ++i)
          for (int64_t j = 0; j < b.parts; ++j) {
            Positions whole(static_cast<size_t>(size));
            for (int64_t p = 0; p < size; ++p) whole[static_cast<size_t>(p)] = p;
            const Positions mine = positions(cut(size, {{a, i}, {b, j}}));
            ASSERT_EQ(mine, slow_cut(slow_cut(whole, a, i), b, j)) << size;
            ASSERT_EQ(static_cast<int64_t>(mine.size()), length_after(length_after(size, a), b)) << size;
            for (int64_t p : mine)
              if (p >= 0) ++seen[static_cast<size_t>(p)];
          }
        ASSERT_EQ(seen, std::vector<int>(static_cast<size_t>(size), 1)) << size;
      }
}

}  // namespace kintsugi::tensor::split_test
