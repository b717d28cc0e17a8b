// The parts that ranks hold and write, for states in all layouts: split, padded, zigzag, within split buckets.
#include "kintsugi/checkpoint/shards.h"

#include <gtest/gtest.h>

#include <random>

#include "kintsugi/base/error.h"
#include "kintsugi/program/state_runs.h"

namespace kintsugi::checkpoint::shards_test {
namespace {

using mesh::Factor;
using mesh::Layout;
using program::Program;
using program::StateInfo;
using tensor::DType;

// A program with states only.
struct States {
  explicit States(std::vector<mesh::Axis> axes) { p.mesh = mesh::Mesh(std::move(axes)); }

  Layout layout(const std::vector<std::pair<std::string, std::vector<std::string>>>& splits) const {
    Layout l;
    for (const auto& [dim, names] : splits) l.set(dim, p.mesh.expand(names));
    return l;
  }

  program::BufferId buffer(const tensor::Shape& whole, DType dtype, const Layout& l) {
    p.buffers.push_back({.name = "b",
                         .type = {mesh::local_shape(p.mesh, whole, l), dtype},
                         .region = program::Region::state,
                         .whole = whole,
                         .layout = l});
    return static_cast<program::BufferId>(p.buffers.size() - 1);
  }

  void add(const std::string& name, const tensor::Shape& whole, const Layout& l, DType dtype = DType::f32) {
    program::StateInfo& info = p.states.emplace_back();
    info.name = name;
    info.buffer = buffer(whole, dtype, l);
    info.whole = {whole, dtype};
    info.layout = l;
  }

  // In a bucket of `length` elements, cut into ranges along `flat`, from element `first` on.
  void add_in_bucket(const std::string& name, const tensor::Shape& whole, const Layout& l, int64_t first,
                     int64_t length, const std::vector<std::string>& flat) {
    Layout bucket;
    std::vector<Factor> shard;
    for (const mesh::Split& s : l.splits()) shard.insert(shard.end(), s.factors.begin(), s.factors.end());
    bucket.set("shard", shard);
    bucket.set("flat", p.mesh.expand(flat));
    add(name, whole, l);
    program::StateInfo& info = p.states.back();
    info.buffer = buffer({{"shard", p.mesh.count(shard)}, {"flat", length}}, DType::f32, bucket);
    info.in_bucket = true;
    info.first = first;
  }

  int ranks() const { return static_cast<int>(p.mesh.ranks()); }

  Program p;
};

int64_t whole_index(const tensor::Shape& shape, const Box& box, int64_t flat) {
  int64_t index = 0;
  for (size_t d = shape.rank(); d-- > 0; flat /= box.size[d])
    index += (box.start[d] + flat % box.size[d]) * shape.stride(d);
  return index;
}

// Position in the buffer -> element of the whole, according to shards.
std::vector<std::pair<int64_t, int64_t>> elements(const StateInfo& s, const std::vector<Shard>& shards) {
  std::vector<std::pair<int64_t, int64_t>> list;
  for (const Shard& shard : shards) {
    int64_t flat = shard.part.flat.begin;
    for_each_span(shard, [&](int64_t at, int64_t count) {
      for (int64_t i = 0; i < count; ++i) list.emplace_back(at + i, whole_index(s.whole.shape, shard.part.box, flat++));
    });
    EXPECT_EQ(flat, shard.part.flat.end);
  }
  std::sort(list.begin(), list.end());
  return list;
}

// The same according to the program.
std::vector<std::pair<int64_t, int64_t>> elements(const Program& p, const StateInfo& s, int rank) {
  std::vector<std::pair<int64_t, int64_t>> list;
  program::for_each_run(p, s, rank, [&](const program::Run& run) {
    for (int64_t i = 0; i < run.count; ++i) list.emplace_back(run.at + i, run.whole + i);
  });
  std::sort(list.begin(), list.end());
  return list;
}

// "" if shards match the program and shares hold each element once; and the bytes of each rank's shares.
std::string check(const States& s, std::vector<int64_t>* bytes = nullptr) {
  std::vector<const StateInfo*> states;
  std::vector<std::vector<int>> written;
  for (const StateInfo& info : s.p.states) {
    states.push_back(&info);
    written.emplace_back(static_cast<size_t>(info.whole.shape.elements()), 0);
    for (int rank = 0; rank < s.ranks(); ++rank)
      if (elements(info, shards_of(s.p, info, rank)) != elements(s.p, info, rank))
        return fmt::format("{} on rank {}", info.name, rank);
  }
  for (int rank = 0; rank < s.ranks(); ++rank) {
    if (bytes) bytes->push_back(0);
    for (const Share& share : shares_of(s.p, states, rank)) {
      const auto held = elements(s.p, *states[share.state], rank);
      for (const auto& element : elements(*states[share.state], {share.shard})) {
        if (!std::binary_search(held.begin(), held.end(), element)) return "a share of what is not held";
        ++written[share.state][static_cast<size_t>(element.second)];
      }
      if (bytes) bytes->back() += share.shard.part.flat.size() * size_of(states[share.state]->whole.dtype);
    }
  }
  for (size_t i = 0; i < states.size(); ++i)
    for (size_t e = 0; e < written[i].size(); ++e)
      if (written[i][e] != 1)
        return fmt::format("element {} of {} is written {} times", e, states[i]->name, written[i][e]);
  return "";
}

}  // namespace

TEST(Shards, PaddingSegmentsAndRanges) {
  States s({{"data", 2}, {"tensor", 2, {"seq"}}});
  s.add("vocab", {{"vocab", 65}, {"embed", 3}}, s.layout({{"vocab", {"data", "tensor"}}}));
  s.add("zigzag", {{"a", 2}, {"seq", 10}}, s.layout({{"seq", {"tensor"}}}));
  s.add_in_bucket("bucket", {{"in", 3}, {"out", 5}}, s.layout({{"out", {"tensor"}}}), 4, 16, {"data"});
  ASSERT_EQ(check(s), "");
  // 65 over 2 is 33 and 32, over 2 x 2 is 17, 16, 17, 15.
  const auto vocab = shards_of(s.p, s.p.states[0], 3);
  ASSERT_EQ(vocab.size(), 1u);
  EXPECT_EQ(vocab[0].part.box, (Box{{50, 0}, {15, 3}}));
  EXPECT_EQ(vocab[0].part.flat, (Range{0, 45}));
  // Chunks of 3 of 12 positions: the first rank has the first chunk, and the only position of the last that is not
  // padding.
  const auto zigzag = shards_of(s.p, s.p.states[1], 0);
  ASSERT_EQ(zigzag.size(), 2u);
  EXPECT_EQ(zigzag[0].part.box, (Box{{0, 0}, {2, 3}}));
  EXPECT_EQ(zigzag[1].part.box, (Box{{0, 9}, {2, 1}}));
  EXPECT_EQ(zigzag[1].first, 3);
  EXPECT_EQ(zigzag[1].stride, (std::vector<int64_t>{6, 1}));
  // Block [3 3] from element 4 on of 16, of which data rank 1 has those from 8 on: from the second element of the
  // second row. The last column of tensor rank 2 is padding.
  const auto bucket = shards_of(s.p, s.p.states[2], 3);
  ASSERT_EQ(bucket.size(), 1u);
  EXPECT_EQ(bucket[0].part.box, (Box{{0, 3}, {3, 2}}));
  EXPECT_EQ(bucket[0].part.flat, (Range{3, 6}));
  EXPECT_EQ(bucket[0].first, -4);
}

TEST(Shards, OneRankWritesWholeTensors) {
  States s({});
  s.add("number", {}, {}, DType::f64);
  s.add_in_bucket("w", {{"in", 3}, {"out", 5}}, {}, 1024, 2048, {});
  ASSERT_EQ(check(s), "");
  const auto shares = shares_of(s.p, {&s.p.states[0], &s.p.states[1]}, 0);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].shard.part.flat, (Range{0, 1}));
  EXPECT_EQ(shares[1].shard.part.flat, (Range{0, 15}));
  EXPECT_EQ(shares[1].shard.first, 1024);
}

TEST(Shards, ReplicasShareEvenlyAndCutFewTensors) {
  States s({{"data", 3}, {"tensor", 2}});
  for (int i = 0; i < 20; ++i) {
    s.add("w" + std::to_string(i), {{"in", 10}, {"out", 7 + i}}, s.layout({{"out", {"tensor"}}}));
    s.add("b" + std::to_string(i), {{"in", 50}}, {}, DType::bf16);
  }
  std::vector<int64_t> bytes;
  ASSERT_EQ(check(s, &bytes), "");
  EXPECT_LE(*std::max_element(bytes.begin(), bytes.end()) - *std::min_element(bytes.begin(), bytes.end()), 600);
  std::vector<const StateInfo*> states;
  for (const StateInfo& info : s.p.states) states.push_back(&info);
  size_t pieces = 0;
  for (int rank = 0; rank < s.ranks(); ++rank) pieces += shares_of(s.p, states, rank).size();
  EXPECT_LE(pieces, 20u * 2 + 2 * 2 + 20 + 5);  // shards of w, and cuts between 3; b, and cuts between 6
}

TEST(Shards, AnyLayout) {
  std::mt19937 random(5);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 300; ++round) {
    const std::vector<std::string> dims = {"x", "y", "z"};
    std::vector<mesh::Axis> axes = {{"a", 1 + below(4)}, {"b", 1 + below(3)}};
    for (mesh::Axis& axis : axes)
      if (below(2)) axis.zigzag = {dims[static_cast<size_t>(below(3))]};
    States s(axes);
    const auto factors = static_cast<Factor>(s.p.mesh.factors().size());
    for (int i = 0; i < 3; ++i) {
      std::vector<tensor::Dim> shape;
      for (int64_t d = below(4); d > 0; --d) shape.push_back({dims[static_cast<size_t>(d - 1)], 1 + below(9)});
      Layout l;
      std::vector<std::string> flat;
      const bool in_bucket = below(2);
      for (Factor f = 0; f < factors; ++f) {
        const int64_t where = below(static_cast<int64_t>(shape.size()) + 2);
        if (where < static_cast<int64_t>(shape.size()))
          l.add(shape[static_cast<size_t>(where)].name, f);
        else if (where == static_cast<int64_t>(shape.size()) && in_bucket)
          flat.push_back(s.p.mesh.factor(f).name);
      }
      const tensor::Shape whole(shape);
      const int64_t length = mesh::local_shape(s.p.mesh, whole, l).elements(), first = below(20);
      const std::string name = "s" + std::to_string(i);
      if (in_bucket)
        s.add_in_bucket(name, whole, l, first, (first + length + below(9) + 71) / 72 * 72, flat);
      else
        s.add(name, whole, l, below(2) ? DType::f32 : DType::f64);
    }
    ASSERT_EQ(check(s), "") << "round " << round;
  }
}

TEST(Shards, AStateInPartsIsNotSaved) {
  States s({{"data", 2}});
  Layout l;
  l.set_part(0, mesh::Combiner::sum);
  s.add("sum", {{"a", 2}}, l);
  EXPECT_THROW(shares_of(s.p, {&s.p.states[0]}, 0), base::InternalError);
}

}  // namespace kintsugi::checkpoint::shards_test
