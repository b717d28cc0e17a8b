#include "app/show_checkpoint.h"

#include <gtest/gtest.h>

#include "kintsugi/checkpoint/scratch_test.h"

namespace kintsugi::app::show_checkpoint_test {
namespace {

std::string shown(const std::filesystem::path& path, bool verify) {
  testing::internal::CaptureStdout();
  show_checkpoint(path, verify);
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

}  // namespace

TEST(ShowCheckpoint, TellsWhatItHolds) {
  checkpoint::ScratchFolder scratch;
  const auto folder = checkpoint::save_small(scratch.path(), 1200);
  const std::string rest =
      "\nstep         1,200\n"
      "weight       1 tensor, 12 elements, 12 B\n"
      "files        3 files, 203 B\n";
  const std::string table =
      "tokenizer    12 B\n"
      "model        layers = 2\n"
      "state        {\"cursor\":1}\n"
      "\n  w  [a:3 b:4]  uint8   weight        12 B  2 pieces\n";
  EXPECT_EQ(shown(folder, true),
            "checkpoint   " + folder.string() + rest + "checksums    verified: every byte matches\n" + table);
  EXPECT_EQ(shown(scratch.path(), false), "checkpoint   " + folder.string() + rest +
                                              "checksums    of the index only; --verify reads every byte\n" + table);
}

TEST(ShowCheckpoint, TellsOfASafetensorsFile) {
  checkpoint::ScratchFolder scratch;
  const auto file = checkpoint::save_small(scratch.path(), 1) / "rank_00000.safetensors";
  EXPECT_EQ(shown(file, false), "safetensors  " + file.string() +
                                    "\ntensors      2 tensors, 12 B\n"
                                    "checksums    the format has none\n\n"
                                    "  w    [6]  uint8            6 B\n"
                                    "  w#1  [6]  uint8            6 B\n");
}

}  // namespace kintsugi::app::show_checkpoint_test
