#include "kintsugi/mesh/layout.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kintsugi::mesh::layout_test {
namespace {

using Factors = std::vector<Factor>;
using Segments = std::vector<tensor::Segment>;
using tensor::Shape;

// data.0, data.1, tensor, context
const Mesh kMesh({{"data", 4}, {"tensor", 2}, {"context", 2, {"seq"}}});
constexpr Factor kData0 = 0, kData1 = 1, kTensor = 2, kContext = 3;

}  // namespace

TEST(Layout, SplitsAreKeptByName) {
  Layout a, b;
  a.add("vocab", kTensor);
  a.add("batch", kData0);
  a.add("batch", kData1);
  b.set("batch", {kData0, kData1});
  b.set("vocab", {kTensor});
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.of("batch"), (Factors{kData0, kData1}));
  EXPECT_EQ(a.of("seq"), Factors{});
  EXPECT_EQ(a.dim_of(kData1), "batch");
  EXPECT_EQ(a.dim_of(kContext), "");
  EXPECT_TRUE(a.is_split(kTensor));
  EXPECT_FALSE(a.is_split(kContext));
  EXPECT_EQ(to_string(kMesh, a), "batch/data, vocab/tensor");

  b.set("batch", {kData1, kData0});  // another order of cutting is another layout
  EXPECT_FALSE(a == b);
  b.set("batch", {});
  b.set("vocab", {});
  b.set("seq", {});
  EXPECT_EQ(b, Layout());
  EXPECT_EQ(to_string(kMesh, b), "whole");
}

TEST(Layout, Parts) {
  Layout a, b;
  a.set_part(kTensor, Combiner::max);
  a.set_part(kData0, Combiner::sum);
  a.set_part(kTensor, Combiner::logsumexp);  // instead of max
  b.set_part(kData0, Combiner::sum);
  EXPECT_FALSE(a == b);
  b.set_part(kTensor, Combiner::logsumexp);
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.partial_factors(), (Factors{kData0, kTensor}));
  EXPECT_EQ(a.part(kTensor)->combiner, Combiner::logsumexp);
  EXPECT_EQ(a.part(kContext), nullptr);
  EXPECT_TRUE(a.sums(kData0));
  EXPECT_FALSE(a.sums(kTensor));
  EXPECT_FALSE(a.sums(kContext));
  EXPECT_EQ(to_string(kMesh, a), "sum over data.0, logsumexp over tensor");
  a.remove_part(kData0);
  a.remove_part(kContext);  // is not there
  a.add("batch", kData1);
  EXPECT_EQ(to_string(kMesh, a), "batch/data.1, logsumexp over tensor");
}

TEST(Layout, Blocks) {
  Layout l;
  l.set("vocab", {kData0, kTensor});
  l.set("seq", {kContext});
  const Shape whole = {{"seq", 7}, {"vocab", 65}, {"embed", 3}};
  EXPECT_EQ(local_shape(kMesh, whole, l), (Shape{{"seq", 4}, {"vocab", 17}, {"embed", 3}}));
  EXPECT_EQ(local_length(kMesh, "vocab", 65, Factors{kData0}), 33);
  EXPECT_EQ(local_length(kMesh, "vocab", 65, Factors{}), 65);
  EXPECT_TRUE(is_padded(kMesh, "vocab", 65, Factors{kData0}));
  EXPECT_FALSE(is_padded(kMesh, "vocab", 66, Factors{kData0}));
  EXPECT_TRUE(is_padded(kMesh, "vocab", 66, Factors{kData0, kTensor}));
  EXPECT_TRUE(is_padded(kMesh, "seq", 6, Factors{kContext}));  // zigzag: four chunks
  EXPECT_FALSE(is_padded(kMesh, "batch", 6, Factors{kContext}));
}

// Ranks of data=4 tensor=2 context=2: rank = 8 data.0 + 4 data.1 + 2 tensor + context.
TEST(Layout, Index) {
  const auto segments = [](std::string_view dim, int64_t size, const Factors& factors, int rank) {
    const tensor::DimIndex index = local_index(kMesh, dim, size, factors, rank);
    EXPECT_EQ(index.whole(), size);
    EXPECT_EQ(index.local(), local_length(kMesh, dim, size, factors));
    return index.segments();
  };
  EXPECT_EQ(segments("vocab", 65, {}, 15), (Segments{{0, 65}}));
  EXPECT_EQ(segments("vocab", 65, {kData0, kTensor}, 0), (Segments{{0, 17}}));
  EXPECT_EQ(segments("vocab", 65, {kData0, kTensor}, 2), (Segments{{17, 16}, {-1, 1}}));
  EXPECT_EQ(segments("vocab", 65, {kData0, kTensor}, 8), (Segments{{33, 17}}));
  EXPECT_EQ(segments("vocab", 65, {kData0, kTensor}, 15), (Segments{{50, 15}, {-1, 2}}));
  EXPECT_EQ(segments("vocab", 65, {kTensor, kData0}, 8), (Segments{{17, 16}, {-1, 1}}));
  EXPECT_EQ(segments("seq", 8, {kContext}, 0), (Segments{{0, 2}, {6, 2}}));
  EXPECT_EQ(segments("seq", 8, {kContext}, 1), (Segments{{2, 4}}));
  EXPECT_EQ(segments("seq", 8, {kContext, kTensor}, 2), (Segments{{6, 2}}));
  EXPECT_EQ(segments("seq", 8, {kTensor, kContext}, 2), (Segments{{4, 1}, {7, 1}}));
}

// Padding nests: gathering the blocks of the last factor in order, minus padding at the end, gives the layout without
// it.
TEST(Layout, GatheringTheLastFactorGivesTheLayoutWithoutIt) {
  const std::vector<Factors> lists = {{kData0}, {kData0, kTensor}, {kTensor, kData1, kData0}, {kData1, kContext}};
  for (int64_t size = 1; size <= 70; ++size)
    for (const Factors& factors : lists)
      for (int rank = 0; rank < kMesh.ranks(); ++rank) {
        const Factors outer(factors.begin(), factors.end() - 1), last(factors.end() - 1, factors.end());
        std::vector<int64_t> gathered, expected;
        for (int peer : kMesh.group(rank, last)) {
          const tensor::DimIndex index = local_index(kMesh, "vocab", size, factors, peer);
          for (int64_t i = 0; i < index.local(); ++i) gathered.push_back(index[i]);
        }
        const tensor::DimIndex index = local_index(kMesh, "vocab", size, outer, rank);
        for (int64_t i = 0; i < index.local(); ++i) expected.push_back(index[i]);
        while (gathered.size() > expected.size()) {
          ASSERT_EQ(gathered.back(), -1);
          gathered.pop_back();
        }
        ASSERT_EQ(gathered, expected) << size;
      }
}

// A block with halo contains what the windows of the rank's outputs reach, and padding elsewhere.
TEST(Layout, Halo) {
  const auto segments = [](int64_t size, const Factors& factors, int rank, const Halo& halo) {
    const tensor::DimIndex index = local_index(kMesh, "height", size, factors, rank, &halo);
    EXPECT_EQ(index.whole(), size);
    EXPECT_EQ(index.local(), local_length(kMesh, "height", size, factors, &halo));
    return index.segments();
  };
  const Halo three = {.outputs = 10, .extent = 3, .low = 1};
  EXPECT_EQ(segments(10, {kTensor}, 0, three), (Segments{{-1, 1}, {0, 6}}));
  EXPECT_EQ(segments(10, {kTensor}, 2, three), (Segments{{4, 6}, {-1, 1}}));
  // Kernel 2, stride 2: nothing from neighbours.
  const Halo pool = {.outputs = 5, .stride = 2, .extent = 2};
  EXPECT_EQ(segments(10, {kTensor}, 0, pool), (Segments{{0, 6}}));
  EXPECT_EQ(segments(10, {kTensor}, 2, pool), (Segments{{6, 4}, {-1, 2}}));  // its third output is padding
  // Stride 3 with kernel 2 skips a position; the last rank has no output.
  const Halo sparse = {.outputs = 5, .stride = 3, .extent = 2};
  EXPECT_EQ(segments(14, {kData0, kTensor}, 0, sparse), (Segments{{0, 5}}));
  EXPECT_EQ(segments(14, {kData0, kTensor}, 8, sparse), (Segments{{9, 5}}));
  EXPECT_EQ(segments(14, {kData0, kTensor}, 10, sparse), (Segments{{-1, 5}}));
  // A kernel wider than a rank's share.
  const Halo wide = {.outputs = 4, .extent = 7, .low = 3};
  EXPECT_EQ(segments(4, {kData0, kTensor}, 0, wide), (Segments{{-1, 3}, {0, 4}}));
  EXPECT_EQ(segments(4, {kData0, kTensor}, 10, wide), (Segments{{0, 4}, {-1, 3}}));

  Layout l;
  l.set("height", {kTensor}, three);
  EXPECT_EQ(to_string(kMesh, l), "height/tensor with halo 3 stride 1");
  EXPECT_EQ(local_shape(kMesh, {{"batch", 2}, {"height", 10}}, l), (Shape{{"batch", 2}, {"height", 7}}));
  EXPECT_TRUE(l.has_halos());
  EXPECT_EQ(*l.halo("height"), three);
  EXPECT_EQ(l.halo("width"), nullptr);
  l.set("height", {kTensor});
  EXPECT_FALSE(l.has_halos());
}

}  // namespace kintsugi::mesh::layout_test
