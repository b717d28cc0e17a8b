#include "kintsugi/checkpoint/folder.h"

#include <gtest/gtest.h>

#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/scratch_test.h"

namespace kintsugi::checkpoint::folder_test {

namespace fs = std::filesystem;

TEST(Folder, TheNewestWholeOneIsFound) {
  ScratchFolder scratch;
  for (const int64_t step : {5, 10, 20, 30}) save_small(scratch.path(), step);
  EXPECT_EQ(newest_whole(scratch.path())->step, 30);
  put(scratch / "step_00000030/rank_00000.safetensors", "damaged");
  fs::remove(scratch / "step_00000020/index.json");
  fs::create_directory(scratch / ".part-step_00000040");
  fs::create_directory(scratch / "step_abc");
  fs::create_directory(scratch / "step_50");
  put(scratch / "step_00000060", "a file");
  EXPECT_EQ(newest_whole(scratch.path())->step, 10);
  EXPECT_EQ(list(scratch.path()).size(), 4u);
  EXPECT_FALSE(newest_whole(scratch / "none"));
  save_small(scratch.path(), 30);  // in place of the damaged one
  EXPECT_EQ(newest_whole(scratch.path())->step, 30);
}

// A folder that cannot be opened, here a link to itself, is reported as such.
TEST(Folder, WhatCannotBeOpenedIsNamed) {
  ScratchFolder scratch;
  std::filesystem::create_symlink("loop", scratch / "loop");
  EXPECT_EQ(error_of([&] { CheckpointReader reader(scratch / "loop"); }, scratch.path()),
            "[checkpoint] cannot read \"loop\": Too many levels of symbolic links");
}

TEST(Folder, PruneKeepsTheNewestAndTheBest) {
  ScratchFolder scratch;
  const auto steps = [&] {
    std::vector<int64_t> numbers;
    for (const SavedStep& saved : list(scratch.path())) numbers.push_back(saved.step);
    return numbers;
  };
  for (const int64_t step : {1, 2, 3, 4, 5, 6}) save_small(scratch.path(), step);
  EXPECT_FALSE(read_best(scratch.path()));
  write_best(scratch.path(), {2, 1.875});
  EXPECT_EQ(read_best(scratch.path()), (Best{2, 1.875}));
  fs::create_directories(scratch / ".part-step_00000007/deeper");
  fs::remove(scratch / "step_00000005/config.toml");
  prune(scratch.path(), 2);
  EXPECT_EQ(steps(), (std::vector<int64_t>{2, 4, 5, 6}));  // 5 cannot be opened: it is neither counted nor removed
  EXPECT_FALSE(fs::exists(scratch / ".part-step_00000007"));
  prune(scratch.path(), 9);
  EXPECT_EQ(steps().size(), 4u);
  write_best(scratch.path(), {4, 1.5});
  prune(scratch.path(), 1);
  EXPECT_EQ(steps(), (std::vector<int64_t>{4, 5, 6}));
  EXPECT_THROW(prune(scratch.path(), 0), base::InternalError);
  put(scratch / "best.json", "{\"step\":1}");
  EXPECT_EQ(error_of([&] { prune(scratch.path(), 1); }, scratch.path()),
            "[checkpoint] \"best.json\":1: \"validation_loss\" is missing");
}

}  // namespace kintsugi::checkpoint::folder_test
