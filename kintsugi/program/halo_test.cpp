#include "kintsugi/program/halo.h"

#include <gtest/gtest.h>

#include <random>

#include "kintsugi/tensor/window.h"

namespace kintsugi::program::halo_test {
namespace {

using Row = std::vector<int64_t>;

// The blocks of all ranks of `mesh`, for a value whose element at position i is 100 + i; padding is 0.
std::vector<Row> blocks(const mesh::Mesh& mesh, const Cuts& cuts, bool with_halo) {
  std::vector<Row> all;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const tensor::DimIndex index =
        mesh::local_index(mesh, cuts.dim, cuts.length, cuts.factors, rank, with_halo ? &*cuts.halo : nullptr);
    Row& row = all.emplace_back();
    for (int64_t i = 0; i < index.local(); ++i) row.push_back(index[i] < 0 ? 0 : 100 + index[i]);
  }
  return all;
}

// What each rank receives of these blocks.
std::vector<Row> exchanged(const mesh::Mesh& mesh, const Cuts& cuts, const std::vector<Row>& have) {
  std::vector<Row> received(have.size());
  const HaloSizes sizes = halo_sizes(mesh, cuts);
  for (size_t rank = 0; rank < have.size(); ++rank) {
    const HaloRows rows = halo_rows(mesh, cuts, static_cast<int>(rank));
    EXPECT_LE(rows.packed.local(), sizes.sent);
    for (const HaloMessage& m : rows.received) {
      const HaloRows peer = halo_rows(mesh, cuts, m.place);
      const auto from = std::ranges::find(peer.sent, static_cast<int>(rank), &HaloMessage::place);
      EXPECT_NE(from, peer.sent.end());
      EXPECT_EQ(from->rows, m.rows);
      EXPECT_EQ(m.first, static_cast<int64_t>(received[rank].size()));
      for (int64_t i = 0; i < m.rows; ++i)
        received[rank].push_back(have[static_cast<size_t>(m.place)][static_cast<size_t>(peer.packed[from->first + i])]);
    }
    EXPECT_LE(static_cast<int64_t>(received[rank].size()), sizes.received);
  }
  return received;
}

struct Random {
  std::mt19937 engine{7};
  int64_t operator()(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(engine);
  }
};

Cuts random_cuts(Random& random, const mesh::Mesh& mesh) {
  for (;;) {
    tensor::Window w = {.kernel = random(1, 7), .stride = random(1, 3), .dilation = random(1, 2)};
    w.low = random(0, w.extent() - 1);
    w.high = random(0, w.extent() - 1);
    const int64_t length = random(1, 40), outputs = w.outputs(length);
    if (outputs < 1) continue;
    return {.dim = "height",
            .length = length,
            .factors = mesh.expand(std::vector<std::string>{"space"}),
            .halo = mesh::Halo{.outputs = outputs, .stride = w.stride, .extent = w.extent(), .low = w.low},
            .exchanges = true};
  }
}

}  // namespace

TEST(Halo, FetchesWhatWindowsReach) {
  Random random;
  for (int round = 0; round < 400; ++round) {
    const mesh::Mesh mesh({{.name = "space", .size = random(2, 6)}});
    const Cuts cuts = random_cuts(random, mesh);
    const std::vector<Row> have = blocks(mesh, cuts, false), want = blocks(mesh, cuts, true),
                           received = exchanged(mesh, cuts, have);
    bool plain = true;
    for (size_t rank = 0; rank < have.size(); ++rank) {
      const tensor::DimIndex placed = halo_rows(mesh, cuts, static_cast<int>(rank)).placed;
      Row rows = have[rank], block;
      rows.insert(rows.end(), received[rank].begin(), received[rank].end());
      for (int64_t i = 0; i < placed.local(); ++i)
        block.push_back(placed[i] < 0 ? 0 : rows[static_cast<size_t>(placed[i])]);
      ASSERT_EQ(block, want[rank]) << round;
      plain &= have[rank] == want[rank];
    }
    EXPECT_EQ(is_plain(mesh, cuts), plain) << round;
  }
}

TEST(Halo, AddsUpWhereBlocksOverlap) {
  Random random;
  for (int round = 0; round < 400; ++round) {
    const mesh::Mesh mesh({{.name = "space", .size = random(2, 6)}});
    Cuts cuts = random_cuts(random, mesh);
    std::vector<Row> have;
    Row whole(static_cast<size_t>(cuts.length), 0);
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      const tensor::DimIndex index = mesh::local_index(mesh, cuts.dim, cuts.length, cuts.factors, rank, &*cuts.halo);
      Row& row = have.emplace_back();
      for (int64_t i = 0; i < index.local(); ++i) {
        row.push_back(random(1, 1000));  // at padding too: nobody may add that
        if (index[i] >= 0) whole[static_cast<size_t>(index[i])] += row.back();
      }
    }
    cuts.halo->adds = true;
    const std::vector<Row> received = exchanged(mesh, cuts, have);
    for (size_t rank = 0; rank < have.size(); ++rank) {
      const tensor::DimIndex placed = halo_rows(mesh, cuts, static_cast<int>(rank)).placed,
                             own = mesh::local_index(mesh, cuts.dim, cuts.length, cuts.factors, static_cast<int>(rank));
      Row rows = have[rank], sums(static_cast<size_t>(own.local()), 0);
      rows.insert(rows.end(), received[rank].begin(), received[rank].end());
      ASSERT_EQ(placed.local(), static_cast<int64_t>(rows.size()));
      for (int64_t i = 0; i < placed.local(); ++i)
        if (placed[i] >= 0) sums[static_cast<size_t>(placed[i])] += rows[static_cast<size_t>(i)];
      for (int64_t i = 0; i < own.local(); ++i)
        ASSERT_EQ(sums[static_cast<size_t>(i)], own[i] < 0 ? 0 : whole[static_cast<size_t>(own[i])]) << round;
    }
  }
}

TEST(Halo, OfAKernelOfThree) {
  const mesh::Mesh mesh({{.name = "space", .size = 2}});
  const Cuts cuts = {.dim = "height",
                     .length = 8,
                     .factors = {0},
                     .halo = mesh::Halo{.outputs = 8, .extent = 3, .low = 1},
                     .exchanges = true};
  const HaloRows first = halo_rows(mesh, cuts, 0);
  EXPECT_EQ(first.sent, (std::vector<HaloMessage>{{1, 0, 1}}));
  EXPECT_EQ(first.received, (std::vector<HaloMessage>{{1, 0, 1}}));
  EXPECT_EQ(first.packed.segments(), (std::vector<tensor::Segment>{{3, 1}}));
  EXPECT_EQ(first.placed.segments(), (std::vector<tensor::Segment>{{-1, 1}, {0, 5}}));
  EXPECT_EQ(halo_rows(mesh, cuts, 1).placed.segments(), (std::vector<tensor::Segment>{{4, 1}, {0, 4}, {-1, 1}}));
  EXPECT_EQ(packed_shape({{"batch", 2}, {"height", 4}, {"width", 5}}, "height", 1),
            (tensor::Shape{{"halo", 1}, {"batch", 2}, {"width", 5}}));
}

}  // namespace kintsugi::program::halo_test
