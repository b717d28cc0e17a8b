#include "kintsugi/mesh/mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace kintsugi::mesh::mesh_test {
namespace {

using Factors = std::vector<Factor>;
using Names = std::vector<std::string>;
using Ranks = std::vector<int>;

const Mesh kMesh({{"data", 12}, {"context", 1}, {"tensor", 2, {"seq"}}});

}  // namespace

TEST(Mesh, OfOneRank) {
  const Mesh mesh;
  EXPECT_EQ(mesh.ranks(), 1);
  EXPECT_TRUE(mesh.factors().empty());
  EXPECT_EQ(mesh.position(0, Factors{}), 0);
  EXPECT_EQ(mesh.group(0, Factors{}), Ranks{0});
  EXPECT_EQ(to_string(mesh), "one rank");
  EXPECT_EQ(to_string(Mesh({{"data", 1}})), "one rank");
}

TEST(Mesh, AnAxisIsItsPrimeFactors) {
  Names names;
  std::vector<int64_t> sizes, strides;
  for (const FactorInfo& f : kMesh.factors()) {
    names.push_back(f.name);
    sizes.push_back(f.size);
    strides.push_back(f.stride);
  }
  EXPECT_EQ(names, (Names{"data.0", "data.1", "data.2", "tensor"}));
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 3, 2}));
  EXPECT_EQ(strides, (std::vector<int64_t>{12, 6, 2, 1}));
  EXPECT_EQ(kMesh.ranks(), 24);
  EXPECT_EQ(kMesh.size("data"), 12);
  EXPECT_EQ(kMesh.size("context"), 1);
  EXPECT_EQ(kMesh.size("pipe"), 1);
  EXPECT_EQ(kMesh.factor(2).axis, 0);
  EXPECT_EQ(kMesh.factor(3).axis, 2);
  EXPECT_EQ(to_string(kMesh), "data=12 tensor=2");
  EXPECT_EQ(Mesh({{"data", 97}}).factors().size(), 1u);
}

TEST(Mesh, Expand) {
  EXPECT_EQ(kMesh.expand(Names{"tensor", "data"}), (Factors{3, 0, 1, 2}));
  EXPECT_EQ(kMesh.expand(Names{"data.2", "data.0"}), (Factors{2, 0}));
  EXPECT_EQ(kMesh.expand(Names{"context"}), Factors{});
  EXPECT_EQ(kMesh.expand(Names{"pipe"}), Factors{});
  for (const char* name : {"data", "data.1", "context", "tensor"}) EXPECT_TRUE(kMesh.has(name)) << name;
  for (const char* name : {"pipe", "data.3", "tensor.0", ""}) EXPECT_FALSE(kMesh.has(name)) << name;
}

// A rank's coordinates equal its positions along every factor.
TEST(Mesh, Coordinates) {
  std::set<std::vector<int64_t>> all;
  for (int rank = 0; rank < kMesh.ranks(); ++rank) {
    std::vector<int64_t> coordinates;
    int64_t back = 0;
    for (Factor f = 0; f < 4; ++f) {
      coordinates.push_back(kMesh.coordinate(rank, f));
      back += kMesh.coordinate(rank, f) * kMesh.factor(f).stride;
    }
    EXPECT_EQ(back, rank);
    EXPECT_TRUE(all.insert(coordinates).second) << rank;
    EXPECT_EQ(kMesh.position(rank, Factors{0, 1, 2, 3}), rank);
    EXPECT_EQ(kMesh.position(rank, kMesh.expand(Names{"data"})), rank / 2);
  }
  EXPECT_EQ(kMesh.position(17, Factors{3, 0}), 3);  // tensor 1, data.0 1
  EXPECT_EQ(kMesh.position(16, Factors{3, 0}), 1);
  EXPECT_EQ(kMesh.count(Factors{0, 2}), 6);
  EXPECT_EQ(kMesh.count(Factors{}), 1);
}

TEST(Mesh, Groups) {
  EXPECT_EQ(kMesh.group(5, kMesh.expand(Names{"tensor"})), (Ranks{4, 5}));
  EXPECT_EQ(kMesh.group(13, Factors{2}), (Ranks{13, 15, 17}));
  EXPECT_EQ(kMesh.group(13, Factors{0, 3}), (Ranks{0, 1, 12, 13}));
  EXPECT_EQ(kMesh.group(13, Factors{3, 0}), (Ranks{0, 12, 1, 13}));
  EXPECT_EQ(kMesh.group(13, kMesh.expand(Names{"data"})), (Ranks{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23}));
}

// For any factors, the groups partition the ranks; in each group a rank is at its position, and members agree on the
// group.
TEST(Mesh, GroupsArePartitions) {
  for (unsigned bits = 0; bits < 16; ++bits) {
    Factors factors;
    for (Factor f = 0; f < 4; ++f)
      if (bits >> f & 1) factors.push_back(f);
    do {
      for (int rank = 0; rank < kMesh.ranks(); ++rank) {
        const Ranks group = kMesh.group(rank, factors);
        ASSERT_EQ(static_cast<int64_t>(group.size()), kMesh.count(factors));
        ASSERT_EQ(group[static_cast<size_t>(kMesh.position(rank, factors))], rank);
        for (int other : group) ASSERT_EQ(kMesh.group(other, factors), group);
      }
    } while (std::next_permutation(factors.begin(), factors.end()));
  }
}

TEST(Mesh, Cuts) {
  EXPECT_EQ(kMesh.cut("seq", 3), (tensor::Cut{2, true}));
  EXPECT_EQ(kMesh.cut("batch", 3), (tensor::Cut{2, false}));
  EXPECT_EQ(kMesh.cut("seq", 2), (tensor::Cut{3, false}));
}

TEST(Mesh, Names) {
  EXPECT_EQ(kMesh.name_of(Factors{}), "");
  EXPECT_EQ(kMesh.name_of(Factors{0, 1, 2}), "data");
  EXPECT_EQ(kMesh.name_of(Factors{0, 1, 2, 3}), "data tensor");
  EXPECT_EQ(kMesh.name_of(Factors{3, 0, 1, 2}), "tensor data");
  EXPECT_EQ(kMesh.name_of(Factors{1, 2}), "data.1 data.2");
  EXPECT_EQ(kMesh.name_of(Factors{0, 2, 1}), "data.0 data.2 data.1");
  EXPECT_EQ(kMesh.name_of(Factors{0, 1, 3, 2}), "data.0 data.1 tensor data.2");
}

TEST(Mesh, Equality) {
  EXPECT_EQ(kMesh, Mesh({{"data", 12}, {"context", 1}, {"tensor", 2, {"seq"}}}));
  EXPECT_FALSE(kMesh == Mesh({{"data", 12}, {"context", 1}, {"tensor", 2}}));
  EXPECT_FALSE(kMesh == Mesh({{"tensor", 2, {"seq"}}, {"data", 12}, {"context", 1}}));
}

TEST(Mesh, Stages) {
  const Mesh mesh({{"data", 2}, {.name = "layers", .size = 6, .cuts_layers = true}, {"tensor", 2}});
  EXPECT_EQ(mesh.stages(), 6);
  EXPECT_EQ(mesh.name_of(mesh.stage_factors()), "layers");
  std::vector<int> stages;
  for (int rank = 0; rank < mesh.ranks(); rank += 2) stages.push_back(mesh.stage_of(rank));
  EXPECT_EQ(stages, (std::vector<int>{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(kMesh.stages(), 1);
  EXPECT_EQ(kMesh.stage_of(23), 0);
}

}  // namespace kintsugi::mesh::mesh_test
