// fp16 training whose gradients overflow.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "kintsugi/base/file.h"
#include "tests/process.h"

namespace kintsugi::tests::overflow_test {
namespace {

// Targets of size `scale`: at 3e5 the gradients overflow even with the smallest loss scale.
void write_table(const fs::path& path, double scale) {
  std::ofstream table(path);
  for (int i = 0; i < 200; ++i) {
    const double a = 1 + i * 37 % 100 / 100.0, b = 1 + i * 53 % 100 / 100.0;
    table << a << ',' << b << ',' << scale * (a + b) << '\n';
  }
}

std::string toml(int steps) {
  return fmt::format(
      "[model]\nfamily = \"mlp\"\nlayers = 1\nembed = 16\n[data]\ntrain = \"table.csv\"\n"
      "[train]\nfolder = \"run\"\nsteps = {}\nglobal_batch = 16\nlearning_rate = 0.01\ndtype = \"fp16\"\n"
      "[parallel]\nthreads = 1\ndevice = \"cpu\"\n",
      steps);
}

}  // namespace

TEST(Overflow, ARunThatMakesNoUpdateIsAnError) {
  TemporaryFolder folder;
  write_table(folder / "table.csv", 3e5);
  std::ofstream(folder / "run.toml") << toml(60);
  const Ended ended = run_kintsugi(folder.path(), "train run.toml");
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("error: [train] step 20: the gradients overflow fp16, and the last 20 updates have been "
                           "skipped, with a loss scale of 1; "),
            std::string::npos)
      << ended.err;
  const std::string metrics = base::read_file(folder / "run/metrics.jsonl");
  EXPECT_NE(metrics.find("\"loss_scale\":1.0,\"skipped_steps\":19"), std::string::npos) << metrics;

  fs::remove_all(folder / "run");
  std::ofstream(folder / "run.toml") << toml(3);  // ends before the scale is as small as it gets
  const Ended brief = run_kintsugi(folder.path(), "train run.toml");
  EXPECT_EQ(brief.code, 1);
  EXPECT_NE(brief.err.find("step 3: the gradients overflow fp16, and the last 3 updates have been skipped"),
            std::string::npos)
      << brief.err;
}

TEST(Overflow, ARunWhoseScaleIsFoundGoesOn) {
  TemporaryFolder folder;
  write_table(folder / "table.csv", 1e3);
  std::ofstream(folder / "run.toml") << toml(20);
  const Ended ended = run_kintsugi(folder.path(), "train run.toml");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err.find("gradient nan"), std::string::npos) << ended.err;
  EXPECT_NE(base::read_file(folder / "run/metrics.jsonl").find("\"skipped_steps\":"), std::string::npos);
}

}  // namespace kintsugi::tests::overflow_test
