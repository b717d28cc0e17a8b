// Parts of a checkpoint on nodes: copies on neighbours, the loss of a node, and what is left over or damaged.
#include "kintsugi/checkpoint/local_parts.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <numeric>

#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/neighbour_copies.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/scratch_test.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/comm/thread_harness.h"

namespace kintsugi::checkpoint::local_parts_test {
namespace {

namespace fs = std::filesystem;

using Strings = std::vector<std::string>;

// Rank r is on node r, whose disk is the folder "node_r"; it holds `floats` numbers of "w".
class LocalParts : public testing::Test {
 protected:
  static constexpr int kRanks = 3;

  fs::path node(int rank) const { return scratch / fmt::format("node_{}", rank); }
  fs::path run() const { return scratch / "run"; }

  // Every rank stages its part of the step, and copies it to its neighbour until `copies` says so or all is copied.
  void stage(int64_t step, bool copies, int64_t floats = 1000) {
    const auto said = comm::on_ranks(kRanks, [&](comm::World& world) -> std::string {
      const int rank = world.rank();
      const auto all = comm::group_of_all(world);
      std::vector<float> mine(static_cast<size_t>(floats));
      std::iota(mine.begin(), mine.end(), static_cast<float>(rank * floats));
      std::optional<CheckpointWriter> writer;
      if (rank == 0) writer.emplace(run(), step, rank, kRanks);
      all->wait(all->barrier());
      if (rank != 0) writer.emplace(run(), step, rank, kRanks);
      writer->add({"w", type(floats), Kind::weight, Box{{rank * floats}, {floats}}, {}},
                  std::as_bytes(std::span(mine)));
      writer->stage(node(rank), {.state = "{\"cursor\":7}", .config = "layers = 2\n", .tokenizer = "{}"});
      if (copies) {
        NeighbourCopies to_neighbours(world, fmt::format("n{}", rank), node(rank));
        if (!to_neighbours.several_nodes()) return "one node";
        to_neighbours.begin(run(), writer->staged());
        while (!to_neighbours.advance()) {
        }
      }
      all->wait(all->barrier());  // the temporary folder is removed by rank 0's writer: the run ends here
      return "";
    });
    ASSERT_EQ(said, Strings(kRanks));
  }
  static tensor::Type type(int64_t floats) { return {{{"a", kRanks * floats}}, tensor::DType::f32}; }

  // What each of the ranks on these nodes recovers.
  std::vector<std::string> recover(const std::vector<int>& nodes) const {
    return comm::on_ranks(static_cast<int>(nodes.size()), [&](comm::World& world) -> std::string {
      const auto all = comm::group_of_all(world);
      const auto step = recover_local_parts(run(), node(nodes[static_cast<size_t>(world.rank())]), *all);
      return step ? fmt::format("{}", *step) : "nothing";
    });
  }
  std::vector<float> numbers(int64_t step, int64_t floats = 1000) const {
    const CheckpointReader reader(step_folder(run(), step));
    reader.verify();
    std::vector<float> list(static_cast<size_t>(kRanks * floats));
    reader.read({"w", {}, {}}, tensor::DType::f32, std::as_writable_bytes(std::span(list)));
    return list;
  }
  static std::vector<float> counting(int64_t n) {
    std::vector<float> list(static_cast<size_t>(n));
    std::iota(list.begin(), list.end(), 0.0f);
    return list;
  }

  ScratchFolder scratch;
};

TEST_F(LocalParts, OfAllNodesAreACheckpoint) {
  save_small(run(), 10);
  stage(20, false);
  EXPECT_EQ(list(run()).back().step, 10);
  EXPECT_EQ(recover({0, 1, 2}), Strings({"20", "20", "20"}));
  EXPECT_EQ(numbers(20), counting(3000));
  const CheckpointReader reader(step_folder(run(), 20));
  EXPECT_EQ(reader.state(), "{\"cursor\":7}");
  EXPECT_EQ(reader.config(), "layers = 2\n");
  EXPECT_EQ(reader.tokenizer(), "{}");
  for (int r = 0; r < kRanks; ++r) EXPECT_TRUE(fs::is_empty(node(r))) << r;
  EXPECT_EQ(recover({0, 1, 2}), Strings({"nothing", "nothing", "nothing"}));
}

// The run continues on two of three nodes, from the part that a neighbour kept.
TEST_F(LocalParts, ANodeThatIsLostIsReplacedByItsNeighbour) {
  for (const int lost : {0, 1, 2}) {
    const int64_t step = 20 + lost;
    stage(step, true);
    fs::remove_all(node(lost));
    const int a = lost == 0 ? 1 : 0, b = lost == 2 ? 1 : 2;
    EXPECT_EQ(recover({a, b}), Strings(2, std::to_string(step))) << lost;
    EXPECT_EQ(numbers(step), counting(3000)) << lost;
  }
}

// Longer than a piece, and not a whole number of them.
TEST_F(LocalParts, ALongPartIsCopiedInPieces) {
  const int64_t floats = 2'500'001;
  stage(20, true, floats);
  fs::remove_all(node(1));
  EXPECT_EQ(recover({2, 0}), Strings({"20", "20"}));
  EXPECT_EQ(numbers(20, floats), counting(3 * floats));
}

TEST_F(LocalParts, WithoutAPartTheOlderCheckpointIsUsed) {
  save_small(run(), 10);
  stage(20, false);
  fs::remove_all(node(1));
  EXPECT_EQ(recover({0, 2}), Strings({"nothing", "nothing"}));
  EXPECT_EQ(newest_whole(run())->step, 10);
  // Parts that the run's folder has made superfluous are removed.
  save_small(run(), 30);
  EXPECT_FALSE(fs::is_empty(node(0)));
  EXPECT_EQ(recover({0, 2}), Strings({"nothing", "nothing"}));
  EXPECT_TRUE(fs::is_empty(node(0)));
}

TEST_F(LocalParts, ADamagedPartIsNoticed) {
  save_small(run(), 10);
  stage(20, false);
  const fs::path file = local_file(node(1), run(), 1, LocalKind::staged);
  std::string bytes = base::read_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  put(file, bytes);
  EXPECT_EQ(recover({0, 1, 2}), Strings({"20", "20", "20"}));
  EXPECT_EQ(newest_whole(run())->step, 10);  // its checksums are those of the ranks that staged it

  stage(40, false);
  fs::resize_file(file, bytes.size() - 1);
  EXPECT_EQ(recover({0, 1, 2}), Strings({"nothing", "nothing", "nothing"}));
  stage(50, false);
  put(description_file(file), "{\"step\": 50");
  EXPECT_EQ(recover({0, 1, 2}), Strings({"nothing", "nothing", "nothing"}));
}

// Parts of another run on the same node are not touched.
TEST_F(LocalParts, BelongToARun) {
  stage(20, false);
  const auto said = comm::on_ranks(1, [&](comm::World& world) -> std::string {
    const auto all = comm::group_of_all(world);
    return recover_local_parts(scratch / "other", node(0), *all) ? "recovered" : "nothing";
  });
  EXPECT_EQ(said, Strings({"nothing"}));
  EXPECT_EQ(local_parts(node(0), run()).size(), 1u);
  EXPECT_EQ(local_parts(node(0), scratch / "run/").size(), 1u);
}

TEST_F(LocalParts, CanBeDrainedSlowly) {
  const std::vector<float> numbers = counting(50'000);
  CheckpointWriter writer(run(), 5);
  writer.add({"w", {{{"a", 50'000}}, tensor::DType::f32}, Kind::weight, {}, {}}, std::as_bytes(std::span(numbers)));
  writer.stage(node(0), {});
  const auto began = std::chrono::steady_clock::now();
  writer.drain(1e6);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(200));
  CheckpointReader(writer.finish({})).verify();
  EXPECT_FALSE(fs::is_empty(node(0)));
  writer.remove_staged();
  EXPECT_TRUE(fs::is_empty(node(0)));
}

TEST(Neighbours, AreOnOtherNodes) {
  using Ranks = std::vector<int>;
  EXPECT_EQ(neighbours_of({"a", "a", "b", "b"}), Ranks({2, 3, 0, 1}));
  EXPECT_EQ(neighbours_of({"a", "b", "a", "b"}), Ranks({1, 0, 3, 2}));
  EXPECT_EQ(neighbours_of({"a", "b", "c"}), Ranks({1, 2, 0}));
  EXPECT_EQ(neighbours_of({"a", "a", "a", "b"}), Ranks({3, 3, 3, 0}));
  EXPECT_EQ(neighbours_of({"a", "a"}), Ranks({-1, -1}));
  EXPECT_EQ(neighbours_of({"a"}), Ranks({-1}));
}

}  // namespace
}  // namespace kintsugi::checkpoint::local_parts_test
