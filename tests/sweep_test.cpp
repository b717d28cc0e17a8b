// `kintsugi sweep`: runs killed on the way, a sweep stopped and continued, halving, and bad input.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "kintsugi/base/file.h"
#include "tests/process.h"

namespace kintsugi::tests::sweep_test {
namespace {

class Sweeps : public ::testing::Test {
 protected:
  Sweeps() {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 400; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
    text.close();
    std::ofstream(folder / "run.toml")
        << "[model]\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"corpus/train\"\nvalidation = "
           "\"corpus/validation\"\n[train]\nsteps = 27\nglobal_batch = 4\nsequence = 16\nevent_files = "
           "false\nevaluate_every = 0\nevaluate_batches = 1\n[checkpoint]\nevery = 5\n";
    EXPECT_EQ(run_kintsugi(folder.path(), "prepare text.txt --tokenizer bytes --output corpus").code, 0);
  }

  void write_sweep(const std::string& text) { std::ofstream(folder / "sweep.toml") << text; }
  Ended run(const std::string& arguments) const { return run_kintsugi(folder.path(), arguments, ":"); }

  std::vector<std::string> csv(const std::string& name) const {
    std::istringstream in(base::read_file(folder / name / "sweep.csv"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  TemporaryFolder folder;
};

// The processes that train a run in this folder.
std::vector<pid_t> trainers_in(const fs::path& folder) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (!std::ranges::all_of(name, ::isdigit)) continue;
    std::error_code error;
    if (fs::read_symlink(entry.path() / "cwd", error) != folder || error) continue;
    std::ifstream in(entry.path() / "cmdline", std::ios::binary);
    std::string words((std::istreambuf_iterator<char>(in)), {});
    std::ranges::replace(words, '\0', ' ');
    if (words.find(" train run.toml --resume auto") != std::string::npos && words.find("/bin/sh") == std::string::npos)
      found.push_back(std::stoi(name));
  }
  return found;
}

// Every run completes its steps, and the worst take over the weights of better ones.
TEST_F(Sweeps, APopulationExchangesWeights) {
  write_sweep(
      "[sweep]\nfolder = \"s\"\nmethod = \"population\"\ntrials = 4\nranks = 2\nfirst_steps = 9\n[search]\n"
      "train.learning_rate = {from = 1e-6, to = 1e-2, scale = \"log\"}\n");
  const Ended ended = run("sweep sweep.toml");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find(" takes over the weights of run_00"), std::string::npos) << ended.err;
  const std::string state = base::read_file(folder / "s/sweep.json");
  EXPECT_NE(state.find("\"exchanges\": 2"), std::string::npos) << state;
  EXPECT_NE(state.find("\"parents\""), std::string::npos) << state;
  std::string notes;
  for (int t = 0; t < 4; ++t) {
    const std::string metrics = base::read_file(folder / fmt::format("s/runs/run_00{}/metrics.jsonl", t));
    EXPECT_EQ(std::ranges::count(metrics, '\n'), 27) << t;
    notes += base::read_file(folder / fmt::format("s/runs/run_00{}.log", t));
  }
  EXPECT_NE(notes.find("train.learning_rate was "), std::string::npos) << notes;
}

TEST_F(Sweeps, GridCompletesThoughRunsAreKilled) {
  write_sweep(
      "[sweep]\nfolder = \"s\"\nranks = 2\nrestarts = 9\n[set]\ntrain.steps = 300\n[search]\ntrain.learning_rate = "
      "[1e-4, 3e-3, 1e-2]\nmodel.layers = [1, 2]\n");
  std::set<pid_t> killed;
  std::atomic<bool> done = false;
  std::thread killer([&] {
    while (!done && killed.size() < 3) {
      for (const pid_t pid : trainers_in(fs::canonical(folder.path())))
        if (killed.size() < 3 && !killed.contains(pid) && ::kill(pid, SIGKILL) == 0) {
          killed.insert(pid);
          break;
        }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const Ended ended = run("sweep sweep.toml");
  done = true;
  killer.join();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(killed.size(), 3u);
  const auto lines = csv("s");
  ASSERT_EQ(lines.size(), 7u) << ended.err;
  EXPECT_EQ(lines[0], "place,run,train.learning_rate,model.layers,steps,validation_loss,failures,note");
  int failures = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    EXPECT_NE(lines[i].find(",300,"), std::string::npos) << lines[i];
    failures += lines[i][lines[i].size() - 2] - '0';
  }
  EXPECT_EQ(failures, 3);
  EXPECT_NE(ended.out.find("best run_0"), std::string::npos) << ended.out;
  EXPECT_TRUE(fs::exists(folder / "s/sweep.html"));
  // Every run equals one started by hand.
  EXPECT_EQ(run("train run.toml --set train.steps=300 train.folder=hand train.learning_rate=0.003 model.layers=1 "
                "parallel.threads=1")
                .code,
            0);
  const auto last = [&](const std::string& name) {
    const std::string text = base::read_file(folder / name / "metrics.jsonl");
    const std::string line = text.substr(text.rfind('\n', text.size() - 2) + 1);
    return line.substr(0, line.find(",\"tokens_per_second\""));
  };
  EXPECT_EQ(last("s/runs/run_002"), last("hand"));
  // Again: nothing is left to do.
  const Ended again = run("sweep sweep.toml");
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, ended.out);
  EXPECT_EQ(again.err, "");
}

TEST_F(Sweeps, HalvingContinuesTheBest) {
  write_sweep(
      "[sweep]\nfolder = \"s\"\nmethod = \"halving\"\ntrials = 6\n[search]\ntrain.learning_rate = {from = 1e-6, to = "
      "1e-2, scale = \"log\"}\n");
  const Ended ended = run("sweep sweep.toml");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto lines = csv("s");
  ASSERT_EQ(lines.size(), 7u);
  const auto count = [&](const std::string& steps) {
    return std::ranges::count_if(lines, [&](const std::string& l) { return l.find("," + steps + ",") != l.npos; });
  };
  EXPECT_EQ(count("27"), 1);
  EXPECT_EQ(count("9"), 1);
  EXPECT_EQ(count("3"), 4);
  EXPECT_NE(ended.out.find("\n48 steps in 6 runs; table and pictures: s/sweep.html\n"), std::string::npos) << ended.out;
  write_sweep(
      "[sweep]\nfolder = \"s\"\nmethod = \"halving\"\ntrials = 7\n[search]\ntrain.learning_rate = {from = 1e-6, to = "
      "1e-2, scale = \"log\"}\n");
  EXPECT_NE(run("sweep sweep.toml").err.find("the sweep in s was begun with other runs; set another sweep.folder"),
            std::string::npos);
}

TEST_F(Sweeps, ASignalStopsItAndTheSameCommandContinues) {
  write_sweep(
      "[sweep]\nfolder = \"s\"\n[set]\ntrain.steps = 2000\ncheckpoint.every = 500\n[search]\ntrain.seed = [1, 2]\n");
  Process sweep(folder.path(), "sweep sweep.toml");
  const fs::path metrics = folder / "s/runs/run_001/metrics.jsonl";
  ASSERT_TRUE(sweep.wait_for([&] { return fs::exists(metrics) && fs::file_size(metrics) > 1000; }));
  sweep.send(SIGTERM);
  const Ended stopped = sweep.wait();
  EXPECT_NE(stopped.err.find("stopped; the same command continues"), std::string::npos) << stopped.err;
  EXPECT_TRUE(trainers_in(fs::canonical(folder.path())).empty());
  // With fewer ranks, and the remaining steps: both runs are resumed, and end with the numbers of undisturbed ones.
  write_sweep(
      "[sweep]\nfolder = \"s\"\nranks = 1\n[set]\ntrain.steps = 2000\ncheckpoint.every = 500\n[search]\ntrain.seed = "
      "[1, 2]\n");
  const Ended ended = run("sweep sweep.toml");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(csv("s").size(), 3u);
  EXPECT_NE(base::read_file(folder / "s/runs/run_001.log").find("resumed at step "), std::string::npos);
}

TEST_F(Sweeps, BadRunsAreNamedBeforeAnyStarts) {
  write_sweep("[sweep]\nfolder = \"s\"\n[search]\nmodel.heads = [2, 3]\n");
  const Ended bad = run("sweep sweep.toml");
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.err.find("[sweep] run_001 (model.heads = 3): [config] "), std::string::npos) << bad.err;
  EXPECT_FALSE(fs::exists(folder / "s"));
  write_sweep("[sweep]\nfolder = \"s\"\nranks = 1\n[set]\nparallel.ranks = 2\n[search]\ntrain.seed = [1, 2]\n");
  EXPECT_EQ(run("sweep sweep.toml").err,
            "error: [sweep] a run has 2 ranks and the sweep 1; raise sweep.ranks, or lower parallel.ranks\n");
  // A run that diverges does not end the others.
  write_sweep("[sweep]\nfolder = \"s\"\n[search]\ntrain.learning_rate = [1e-3, 1e30]\n");
  const Ended ended = run("sweep sweep.toml");
  EXPECT_EQ(ended.code, 0) << ended.err;
  const auto lines = csv("s");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[1].starts_with("1,run_000,")) << lines[1];
  EXPECT_NE(lines[2].find("the loss or the gradient is not finite"), std::string::npos) << lines[2];
}

}  // namespace
}  // namespace kintsugi::tests::sweep_test
