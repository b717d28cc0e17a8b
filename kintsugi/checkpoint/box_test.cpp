#include "kintsugi/checkpoint/box.h"

#include <gtest/gtest.h>

#include <random>

namespace kintsugi::checkpoint::box_test {
namespace {

// The index in the whole tensor of an element of a box.
int64_t global_index(const tensor::Shape& shape, const Box& box, int64_t flat) {
  int64_t index = 0;
  for (size_t d = shape.rank(); d-- > 0;) {
    index += (box.start[d] + flat % box.size[d]) * shape.stride(d);
    flat /= box.size[d];
  }
  return index;
}

Part random_part(const tensor::Shape& shape, std::mt19937& random) {
  Part part;
  for (const tensor::Dim& dim : shape) {
    part.box.start.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(dim.size)));
    part.box.size.push_back(1 +
                            static_cast<int64_t>(random() % static_cast<uint64_t>(dim.size - part.box.start.back())));
    if (random() % 3 == 0) part.box.start.back() = 0, part.box.size.back() = dim.size;
  }
  const auto n = static_cast<uint64_t>(part.box.elements());
  part.flat = {static_cast<int64_t>(random() % (n + 1)), static_cast<int64_t>(random() % (n + 1))};
  if (part.flat.begin > part.flat.end) std::swap(part.flat.begin, part.flat.end);
  return part;
}

}  // namespace

TEST(Box, CommonRunsAreWhatElementsSay) {
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::vector<tensor::Dim> dims;
    for (uint64_t d = random() % 5; d > 0; --d)
      dims.push_back({std::to_string(d), 1 + static_cast<int64_t>(random() % 5)});
    const tensor::Shape shape(dims);
    const Part a = random_part(shape, random), b = random_part(shape, random);
    std::vector<int64_t> expected(static_cast<size_t>(a.flat.size()), -1), got = expected;
    for (int64_t x = a.flat.begin; x < a.flat.end; ++x)
      for (int64_t y = b.flat.begin; y < b.flat.end; ++y)
        if (global_index(shape, a.box, x) == global_index(shape, b.box, y))
          expected[static_cast<size_t>(x - a.flat.begin)] = y - b.flat.begin;
    for_each_common_run(a, b, [&](int64_t x, int64_t y, int64_t n) {
      EXPECT_GT(n, 0);
      for (int64_t k = 0; k < n; ++k) {
        EXPECT_EQ(got.at(static_cast<size_t>(x + k)), -1);
        got.at(static_cast<size_t>(x + k)) = y + k;
      }
    });
    ASSERT_EQ(got, expected) << to_string(shape) << to_string(a.box) << to_string(b.box);
  }
}

TEST(Box, RunsAreAsLongAsTheyCanBe) {
  const Part whole{{{0, 0, 0}, {4, 8, 16}}, {0, 512}};
  int runs = 0;
  const auto count = [&](int64_t, int64_t, int64_t) { ++runs; };
  for_each_common_run(whole, whole, count);
  EXPECT_EQ(runs, 1);
  runs = 0;
  for_each_common_run(whole, {{{1, 2, 0}, {2, 4, 16}}, {0, 128}}, count);
  EXPECT_EQ(runs, 2);
  runs = 0;  // one element of a large box: no walk over its rows
  const Part large{{{0, 0}, {1 << 20, 1 << 20}}, {0, int64_t{1} << 40}};
  for_each_common_run(large, {{{0, 1}, {1 << 20, 1 << 10}}, {int64_t{1} << 29, (int64_t{1} << 29) + 1}}, count);
  EXPECT_EQ(runs, 1);
}

TEST(Box, Fits) {
  const tensor::Shape shape{{"a", 4}, {"b", 6}};
  EXPECT_TRUE(fits(Box{{1, 2}, {3, 4}}, shape));
  EXPECT_FALSE(fits(Box{{1, 3}, {3, 4}}, shape));
  EXPECT_FALSE(fits(Box{{1}, {3}}, shape));
  EXPECT_FALSE(fits(Box{{-1, 0}, {3, 4}}, shape));
  EXPECT_FALSE(fits(Box{{5, 0}, {0, 4}}, shape));
  EXPECT_FALSE(fits(Box{{1, 0}, {INT64_MAX, 4}}, shape));
  EXPECT_EQ(to_string(Box{{1, 2}, {3, 4}}), "[1:4 2:6]");
  EXPECT_FALSE(overlap({{0, 0}, {2, 2}}, {{2, 0}, {2, 2}}));
  EXPECT_TRUE(overlap({{0, 0}, {2, 2}}, {{1, 1}, {2, 2}}));
}

}  // namespace kintsugi::checkpoint::box_test
