// The system's measurement of a training process compared with its plan. docs/memory.md has the numbers.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>

#include "kintsugi/base/file.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "tests/paths.h"
#include "tests/process.h"

namespace kintsugi::tests::peak_memory_test {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

// In addition to the plan, a process has the memory of a tiny model's process (binary, libraries, compiled oneDNN
// kernels, tokenizer, loader, the checkpoint's shard buffer), and per rank malloc's residue of oneDNN's packed
// operands: up to 3.4 MiB per matmul, several times over if small blocks remain in between.
constexpr double kTinyAtMost = 35, kPerRank = 12;  // MiB
constexpr double kShare = 0.05;

class PeakMemory : public testing::Test {
 protected:
  PeakMemory() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "Line " + std::to_string(i * i % 97) + " of a text that a model can learn.\n";
    std::ofstream(folder_ / "text.txt") << text;
    std::ofstream(folder_ / "run.toml") << fmt::format(
        "[model]\nlayers = 4\nembed = 512\nheads = 8\nvocab = 512\n"
        "[data]\ntrain = \"{}\"\n"
        "[train]\nsteps = 1\nglobal_batch = 8\nmicro_batch = 8\nsequence = 64\n"
        "[parallel]\nthreads = 1\ntransport = \"threads\"\n",
        (folder_ / "corpus/train").string());
    EXPECT_EQ(run_kintsugi(folder_.path(), "prepare text.txt --tokenizer bytes --output corpus").code, 0);
  }

  // MiB of the plans of all ranks of this process.
  double planned(const std::vector<std::string>& sets) const {
    const config::Settings s = config::load((folder_ / "run.toml").string(), models::catalog(), sets, 2).settings;
    const auto stages = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
    int64_t bytes = 0;
    for (int r = 0; r < stages[0].mesh.ranks(); ++r)
      bytes += stages[static_cast<size_t>(stages[0].mesh.stage_of(r))].bytes();
    return static_cast<double>(bytes) / kMiB;
  }

  // Peak MiB of the process. Read from /proc while it runs, since the numbers of wait4 include its parent's memory.
  double measured(const std::vector<std::string>& sets) {
    std::vector<std::string> words = {kintsugi_command(), "train", (folder_ / "run.toml").string(), "--set",
                                      "train.folder=" + (folder_ / fmt::format("run{}", ++runs_)).string()};
    words.insert(words.end(), sets.begin(), sets.end());
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const fs::path said = folder_ / "said.txt";
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t pid = -1;
    EXPECT_EQ(::posix_spawn(&pid, words[0].c_str(), &actions, nullptr, argv.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    double peak = 0;
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      std::ifstream in(fmt::format("/proc/{}/status", pid));
      for (std::string line; std::getline(in, line);)
        if (line.starts_with("VmHWM:")) peak = std::max(peak, std::stod(line.substr(6)) / 1024);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(status, 0) << base::read_file(said);
    return peak;
  }

  TemporaryFolder folder_;
  int runs_ = 0;
};

struct Case {
  const char* name;
  int ranks;
  std::vector<std::string> sets;
};

TEST_F(PeakMemory, IsThePlanAndAConstant) {
  const std::vector<std::string> tiny = {"model.layers=1", "model.embed=32", "train.sequence=16"};
  const double constant = measured(tiny) - planned(tiny);
  fmt::print("constant {:.1f} MiB\n", constant);
  EXPECT_LT(constant, kTinyAtMost);
  EXPECT_GT(constant, 0);
  const std::vector<Case> cases = {
      {"one rank", 1, {"model.vocab=8192"}},
      {"recompute = full", 1, {"model.layers=6", "train.sequence=128", "parallel.recompute=full"}},
      {"data = 2", 2, {"model.layers=3", "model.vocab=4096", "parallel.data=2", "train.micro_batch=4"}},
      {"pipe = 2, 1f1b, 4 micro-batches",
       2,
       {"model.layers=5", "model.vocab=8192", "parallel.pipe=2", "train.micro_batch=2"}},
  };
  for (const Case& c : cases) {
    const double plan = planned(c.sets), peak = measured(c.sets), expected = plan + constant + c.ranks * kPerRank;
    fmt::print("{:<36} plan {:6.1f} MiB, measured {:6.1f}, beside it {:4.1f}, off by {:5.2f}%\n", c.name, plan, peak,
               peak - plan, 100 * (peak - expected) / plan);
    EXPECT_GT(plan, 256) << c.name;
    EXPECT_GT(peak, plan) << c.name;
    EXPECT_LT(std::abs(peak - expected), kShare * plan) << c.name;
  }
}

}  // namespace
}  // namespace kintsugi::tests::peak_memory_test
