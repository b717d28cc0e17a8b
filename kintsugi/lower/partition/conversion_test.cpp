#include "kintsugi/lower/partition/conversion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>

#include "kintsugi/lower/pass_test.h"

namespace kintsugi::lower::conversion_test {
namespace {

using mesh::Combiner;
using mesh::Factor;
using mesh::Layout;
using mesh::Mesh;

// Factors: 0 data, 1 and 2 tensor, 3 context, which cuts seq zigzag.
Mesh mesh_of_24() {
  return Mesh(
      {{.name = "data", .size = 3}, {.name = "tensor", .size = 4}, {.name = "context", .size = 2, .zigzag = {"seq"}}});
}

// "reduce_scatter over tensor to seq; all_gather over data from batch"
std::string text(const Mesh& mesh, const std::vector<Step>& steps) {
  std::string all;
  for (const Step& s : steps) {
    all += (all.empty() ? "" : "; ") + std::string(name_of(s.move));
    if (s.combiner != Combiner::sum) all += fmt::format(" {}", tensor::name_of(s.combiner));
    all += " over " + mesh.name_of(s.factors);
    if (!s.from.empty()) all += " from " + s.from;
    if (!s.to.empty()) all += " to " + s.to;
  }
  return all.empty() ? "nothing" : all;
}

std::string steps(const std::string& now, const std::string& goal) {
  const Mesh mesh = mesh_of_24();
  return text(mesh, conversion(layout_of(mesh, now), layout_of(mesh, goal)));
}

// The same with fewer ranks, for random pairs: data cuts seq zigzag.
Mesh mesh_of_12() {
  return Mesh({{.name = "data", .size = 3, .zigzag = {"seq"}}, {.name = "tensor", .size = 4}});
}

// What each rank holds, by definition: its elements, and whose parts are added in each. Parts are identified by the
// positions of their ranks along the factors that were partial initially.
using Index = std::vector<int64_t>;
using Parts = std::set<std::vector<int64_t>>;
using Held = std::map<Index, Parts>;

std::vector<Index> indices(const Mesh& mesh, const Shape& whole, const Layout& l, int rank) {
  std::vector<Index> all = {{}};
  for (const tensor::Dim& d : whole) {
    const tensor::DimIndex index = mesh::local_index(mesh, d.name, d.size, l.of(d.name), rank);
    std::vector<Index> next;
    for (const Index& i : all)
      for (int64_t at = 0; at < index.local(); ++at) {
        if (index[at] < 0) continue;  // padding
        next.push_back(i);
        next.back().push_back(index[at]);
      }
    all = std::move(next);
  }
  return all;
}

std::vector<int64_t> places(const Mesh& mesh, int rank, const std::vector<Factor>& factors) {
  std::vector<int64_t> p;
  for (Factor f : factors) p.push_back(mesh.coordinate(rank, f));
  return p;
}

class Ranks {
 public:
  Ranks(const Mesh& mesh, const Shape& whole, const Layout& l)
      : mesh_(mesh), whole_(whole), partial_(l.partial_factors()) {
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      held_.emplace_back();
      for (const Index& i : indices(mesh, whole, l, rank)) held_.back()[i] = {places(mesh, rank, partial_)};
    }
  }

  // The effect of a collective, or why it is impossible. Counts elements from other ranks.
  std::string run(const Step& s) {
    std::vector<Held> next;
    came_ = 0;
    for (int rank = 0; rank < mesh_.ranks(); ++rank) {
      next.emplace_back();
      const std::vector<int> group = mesh_.group(rank, s.factors);
      for (const Index& i : indices(mesh_, whole_, s.after, rank)) {
        Parts& got = next.back()[i];
        for (int peer : s.move == Move::slice ? std::vector<int>{rank} : group) {
          const auto at = held_[static_cast<size_t>(peer)].find(i);
          const bool adds = s.move == Move::all_reduce || s.move == Move::reduce_scatter;
          if (at == held_[static_cast<size_t>(peer)].end()) {
            if (adds || s.move == Move::slice) return fmt::format("rank {} lacks an element to give {}", peer, rank);
            continue;
          }
          if (!adds && !got.empty()) return fmt::format("an element comes to rank {} twice", rank);
          for (const std::vector<int64_t>& part : at->second)
            if (!got.insert(part).second) return fmt::format("a part is added on rank {} twice", rank);
          came_ += peer != rank ? 1 : 0;
        }
        if (got.empty()) return fmt::format("an element never comes to rank {}", rank);
      }
    }
    held_ = std::move(next);
    return "";
  }

  int64_t came() const { return came_; }  // to all ranks, by the last step

  // "" if each rank holds what the layout says.
  std::string lies(const Layout& goal) const {
    for (int rank = 0; rank < mesh_.ranks(); ++rank) {
      const std::vector<Index> want = indices(mesh_, whole_, goal, rank);
      const Held& have = held_[static_cast<size_t>(rank)];
      if (have.size() != want.size()) return fmt::format("rank {} has {} of {}", rank, have.size(), want.size());
      Parts parts;
      for (int peer = 0; peer < mesh_.ranks(); ++peer) {
        bool mine = true;
        for (Factor f : partial_) mine &= !goal.part(f) || mesh_.coordinate(peer, f) == mesh_.coordinate(rank, f);
        if (mine) parts.insert(places(mesh_, peer, partial_));
      }
      for (const Index& i : want)
        if (!have.contains(i) || have.at(i) != parts) return fmt::format("rank {} has the wrong parts", rank);
    }
    return "";
  }

 private:
  const Mesh& mesh_;
  const Shape& whole_;
  std::vector<Factor> partial_;
  std::vector<Held> held_;
  int64_t came_ = 0;
};

// Each factor cuts a dim, is partial, or is unused.
Layout random_layout(std::mt19937& random, const Mesh& mesh, const Shape& whole) {
  std::vector<Factor> order;
  for (Factor f = 0; f < static_cast<Factor>(mesh.factors().size()); ++f) order.push_back(f);
  std::shuffle(order.begin(), order.end(), random);
  Layout l;
  for (Factor f : order) {
    const auto at = random() % (whole.rank() + 2);
    if (at < whole.rank()) l.add(whole[at].name, f);
    if (at == whole.rank()) l.set_part(f, Combiner::sum);
  }
  return l;
}

}  // namespace

TEST(Conversion, TheTable) {
  struct Case {
    const char *now, *goal, *steps;
  };
  const Case cases[] = {
      {"sum over data", "whole", "all_reduce over data"},
      {"sum over data", "flat/data", "reduce_scatter over data to flat"},
      {"flat/data", "whole", "all_gather over data from flat"},
      {"seq/context", "kv_heads/context", "all_to_all over context from seq to kv_heads"},
      {"whole", "ffn/data", "slice over data to ffn"},
      {"ffn/data", "ffn/data", "nothing"},
      {"sum over data", "sum over data", "nothing"},
      {"max over data", "whole", "all_reduce max over data"},
      {"logsumexp over data", "whole", "all_reduce logsumexp over data"},
      // A combination other than a sum has no reduce-scatter.
      {"max over data", "seq/data", "all_reduce max over data; slice over data to seq"},
  };
  for (const Case& c : cases) EXPECT_EQ(steps(c.now, c.goal), c.steps) << c.now << " -> " << c.goal;
}

TEST(Conversion, FactorsThatGoTheSameWayGoTogether) {
  struct Case {
    const char *now, *goal, *steps;
  };
  const Case cases[] = {
      {"sum over tensor", "whole", "all_reduce over tensor"},
      {"sum over tensor", "seq/tensor", "reduce_scatter over tensor to seq"},
      {"seq/tensor", "whole", "all_gather over tensor from seq"},
      {"seq/tensor", "ffn/tensor", "all_to_all over tensor from seq to ffn"},
      {"whole", "seq/tensor", "slice over tensor to seq"},
      {"sum over data tensor", "whole", "all_reduce over data tensor"},
      {"flat/data tensor", "flat/data", "all_gather over tensor from flat"},
      // Two key-value heads on four ranks: each factor has its own dim.
      {"seq/tensor", "kv_heads/tensor.0, group/tensor.1",
       "all_to_all over tensor.1 from seq to group; all_to_all over tensor.0 from seq to kv_heads"},
      // Splits come before gathers.
      {"seq/data, sum over tensor.0", "ffn/tensor.0",
       "reduce_scatter over tensor.0 to ffn; all_gather over data from seq"},
  };
  for (const Case& c : cases) EXPECT_EQ(steps(c.now, c.goal), c.steps) << c.now << " -> " << c.goal;
}

// Sums over consecutive factors are the same binary tree for every number of factors.
TEST(Conversion, SumsFactorByFactor) {
  const Mesh mesh = mesh_of_24();
  const auto one_by_one = [&](const char* now, const char* goal) {
    return text(mesh, conversion(layout_of(mesh, now), layout_of(mesh, goal), true));
  };
  EXPECT_EQ(one_by_one("sum over tensor", "whole"), "all_reduce over tensor.0; all_reduce over tensor.1");
  EXPECT_EQ(one_by_one("sum over tensor", "flat/tensor"),
            "reduce_scatter over tensor.0 to flat; reduce_scatter over tensor.1 to flat");
  EXPECT_EQ(one_by_one("flat/tensor", "whole"), "all_gather over tensor from flat");
}

TEST(Conversion, AWholeValueHasNoParts) {
  std::string error = "no error";
  try {
    steps("whole", "sum over data");
  } catch (const std::exception& e) {
    error = e.what();
  }
  EXPECT_EQ(error, "[partition] internal error: a whole value is needed as parts");
}

TEST(Conversion, WhatARankSends) {
  const Mesh mesh = mesh_of_24();
  const Shape whole = {{"seq", 24}, {"ffn", 8}};
  const auto sent = [&](const char* now, const char* goal) {
    const std::vector<Step> all = conversion(layout_of(mesh, now), layout_of(mesh, goal));
    return all.size() == 1 ? traffic(mesh, whole, all[0]) : -1.0;
  };
  EXPECT_EQ(sent("sum over data", "whole"), 2 * 192 * 2.0 / 3);
  EXPECT_EQ(sent("sum over data", "seq/data"), 192 * 2.0 / 3);
  EXPECT_EQ(sent("seq/tensor", "whole"), 192 * 3.0 / 4);
  EXPECT_EQ(sent("seq/tensor", "ffn/tensor"), 48 * 3.0 / 4);
  EXPECT_EQ(sent("whole", "seq/tensor"), 0);
  EXPECT_EQ(sent("ffn/context, seq/tensor", "ffn/context"), 96 * 3.0 / 4);
}

// Any layout into any other without new parts: each step alone is possible, moves what it claims, and in the end each
// rank has what it should.
TEST(Conversion, RandomPairs) {
  const Mesh mesh = mesh_of_12();
  std::mt19937 random(1);
  std::map<Move, int> moves;
  for (int trial = 0; trial < 300; ++trial) {
    // Sizes that all factors divide, in any order, and sizes that none does.
    const bool divides = trial % 2 == 0;
    const Shape whole = divides ? Shape{{"batch", 12}, {"seq", 24}} : Shape{{"batch", 13}, {"seq", 19}};
    const Layout now = random_layout(random, mesh, whole);
    Layout goal = random_layout(random, mesh, whole);
    for (Factor f : goal.partial_factors())
      if (!now.part(f)) goal.remove_part(f);
    const std::string what = fmt::format("trial {}: {} -> {}", trial, to_string(mesh, now), to_string(mesh, goal));
    Ranks ranks(mesh, whole, now);
    Layout at = now;
    for (const Step& s : conversion(now, goal)) {
      ASSERT_EQ(s.before, at) << what;
      ASSERT_EQ(ranks.run(s), "") << what << ", at " << text(mesh, {s});
      ASSERT_EQ(ranks.lies(s.after), "") << what << ", after " << text(mesh, {s});
      // An all-reduce sends what a reduce-scatter and an all-gather do: twice the part of each other rank.
      const auto others = static_cast<double>(mesh.count(s.factors)) - 1;
      double came = static_cast<double>(ranks.came()) / static_cast<double>(mesh.ranks());
      if (s.move == Move::all_reduce) came *= 2.0 / (others + 1);
      const double sent = traffic(mesh, whole, s);  // with padding, which does not count as having come
      ASSERT_TRUE(divides ? std::abs(sent - came) <= 1e-9 * came : sent >= came)
          << what << ": " << sent << ", " << came;
      ++moves[s.move];
      at = s.after;
    }
    ASSERT_EQ(at, goal) << what;
  }
  for (Move m : {Move::slice, Move::reduce_scatter, Move::all_reduce, Move::all_to_all, Move::all_gather})
    EXPECT_GT(moves[m], 20) << name_of(m);
}

TEST(Conversion, Halos) {
  const Mesh mesh({{.name = "data", .size = 2}, {.name = "space", .size = 4}});
  const Factor data = 0, first = 1, second = 2;
  const mesh::Halo three = {.outputs = 16, .extent = 3, .low = 1},
                   pool = {.outputs = 8, .stride = 2, .extent = 3, .low = 1};
  mesh::Halo adds = three;
  adds.adds = true;
  const auto split = [](std::vector<Factor> height, std::optional<mesh::Halo> halo = std::nullopt) {
    Layout l;
    l.set("height", std::move(height), halo);
    return l;
  };
  const auto steps = [&](const Layout& now, const Layout& goal) { return text(mesh, conversion(now, goal)); };
  const Layout plain = split({first, second}), with = split({first, second}, three),
               partial = split({first, second}, adds), other = split({first, second}, pool), whole;
  EXPECT_EQ(steps(plain, with), "halo over space to height");
  EXPECT_EQ(steps(whole, with), "halo over space to height");
  EXPECT_EQ(steps(partial, plain), "halo_sum over space from height");
  EXPECT_EQ(steps(partial, whole), "halo_sum over space from height; all_gather over space from height");
  EXPECT_EQ(steps(partial, other), "halo_sum over space from height; halo over space to height");
  EXPECT_EQ(steps(split({first}), with), "slice over space.1 to height; halo over space to height");
  Layout sum = plain;
  sum.set_part(data, Combiner::sum);
  EXPECT_EQ(steps(sum, with), "all_reduce over data; halo over space to height");
  Layout of_sum = partial, batch = plain;
  of_sum.set_part(data, Combiner::sum);
  batch.set("batch", {data});
  EXPECT_EQ(steps(of_sum, batch), "halo_sum over space from height; reduce_scatter over data to batch");
  // What stays unchanged does not prevent the rest.
  Layout both = with;
  both.set("batch", {data});
  EXPECT_EQ(steps(both, with), "all_gather over data from batch");
  EXPECT_EQ(steps(with, both), "slice over data to batch");
  // The second of two dims fetches the corners of the first.
  Layout tiles, tiles_with;
  tiles.set("height", {first});
  tiles.set("width", {second});
  tiles_with.set("height", {first}, three);
  tiles_with.set("width", {second}, three);
  const std::vector<Step> two = conversion(tiles, tiles_with);
  EXPECT_EQ(text(mesh, two), "halo over space.0 to height; halo over space.1 to width");
  const Shape image = {{"height", 16}, {"width", 16}};
  EXPECT_EQ(traffic(mesh, image, two[0]), 8);   // a row of 8
  EXPECT_EQ(traffic(mesh, image, two[1]), 10);  // a column of 8 + 2
  EXPECT_EQ(traffic(mesh, image, conversion(plain, with)[0]), 2 * 16);
  EXPECT_EQ(traffic(mesh, image, conversion(whole, with)[0]), 0);
  EXPECT_EQ(traffic(mesh, image, conversion(partial, plain)[0]), 2 * 16);
  EXPECT_TRUE(halos_allow(plain, with));
  EXPECT_TRUE(halos_allow(partial, with));
  EXPECT_TRUE(halos_allow(with, with));
  EXPECT_FALSE(halos_allow(with, plain));
  EXPECT_FALSE(halos_allow(with, other));
}

}  // namespace kintsugi::lower::conversion_test
