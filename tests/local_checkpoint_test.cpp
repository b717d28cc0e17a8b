// Checkpoints that are written to a node's own disk first.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "kintsugi/base/file.h"
#include "tests/process.h"

namespace kintsugi::tests::local_checkpoint_test {
namespace {

// The run's folder ends with the same bytes, and the metrics have the times of staging and copying.
TEST(LocalCheckpoint, EndsInTheRunsFolder) {
  TemporaryFolder folder;
  std::ofstream(folder / "text.txt") << std::string(20'000, 'a') << std::string(20'000, 'b');
  ASSERT_EQ(run_kintsugi(folder.path(), "prepare text.txt --output corpus").code, 0);
  std::ofstream(folder / "run.toml") << "[model]\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"corpus/train\"\n"
                                        "[train]\nsteps = 200\nglobal_batch = 4\nsequence = 16\nevent_files = false\n"
                                        "[checkpoint]\nevery = 20\n[parallel]\nranks = 2\nthreads = 1\n";
  const Ended plain = run_kintsugi(folder.path(), "train run.toml --set train.folder=plain");
  ASSERT_EQ(plain.code, 0) << plain.err;
  const Ended local = run_kintsugi(folder.path(), "train run.toml --set train.folder=local checkpoint.local=disk");
  ASSERT_EQ(local.code, 0) << local.err;
  const std::string metrics = base::read_file(folder / "local" / "metrics.jsonl");
  EXPECT_NE(metrics.find("\"stage_seconds\":"), metrics.npos);
  EXPECT_NE(metrics.find("\"drain_seconds\":"), metrics.npos);
  for (const std::string part : {"rank_00000.safetensors", "rank_00001.safetensors"}) {
    const auto file = std::filesystem::path("step_00000200") / part;
    EXPECT_EQ(base::read_file(folder / "local" / file), base::read_file(folder / "plain" / file)) << part;
  }
  const Ended more = run_kintsugi(folder.path(), "train local --resume --set train.steps=201");
  EXPECT_EQ(more.code, 0) << more.err;
}

}  // namespace
}  // namespace kintsugi::tests::local_checkpoint_test
