// Bit-reproducibility: from run to run, and over all ways to stop and resume.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/kernels/random.h"
#include "tests/small_run.h"

namespace kintsugi::tests::repeat_test {
namespace {

std::vector<std::string> in(const RunFiles& files, const std::string& run, std::vector<std::string> sets = {}) {
  sets.push_back("train.folder=" + files.folder(run).string());
  return sets;
}

// Two runs that ended at the same step: metrics, tensors, kept checkpoints, and the best one.
void expect_same(const RunFiles& files, const std::string& a, const std::string& b) {
  const std::filesystem::path one = files.folder(a), other = files.folder(b);
  EXPECT_EQ(metrics_of(one), metrics_of(other));
  const auto saved = checkpoint::list(one), saved_too = checkpoint::list(other);
  ASSERT_FALSE(saved.empty());
  ASSERT_FALSE(saved_too.empty());
  ASSERT_EQ(saved.back().step, saved_too.back().step);
  const auto tensors = tensors_of(saved.back().folder), tensors_too = tensors_of(saved_too.back().folder);
  EXPECT_GE(tensors.size(), 3u * 20u);
  ASSERT_EQ(tensors.size(), tensors_too.size());
  for (const auto& [name, bytes] : tensors) EXPECT_TRUE(bytes == tensors_too.at(name)) << name << " differs";
  EXPECT_EQ(checkpoint::CheckpointReader(saved.back().folder).state(),
            checkpoint::CheckpointReader(saved_too.back().folder).state());
  EXPECT_EQ(checkpoint::read_best(one), checkpoint::read_best(other));
}

struct RepeatCase {
  std::string family, dtype;
};

}  // namespace

class Repeat : public testing::TestWithParam<RepeatCase> {
 protected:
  std::string toml() const { return files.toml(GetParam().family, GetParam().dtype); }

  RunFiles files;
};

TEST_P(Repeat, TwoRunsAndOneInThreePartsGiveTheSameBits) {
  EXPECT_TRUE(run_here(toml(), in(files, "a")).finished);
  EXPECT_TRUE(run_here(toml(), in(files, "b")).finished);
  ASSERT_EQ(metrics_of(files.folder("a")).size(), 20u);
  expect_same(files, "a", "b");

  train::Outcome outcome = run_here(toml(), in(files, "c"), false, 7);
  EXPECT_EQ(outcome.step, 7);
  EXPECT_FALSE(outcome.finished);
  EXPECT_EQ(outcome.reason, train::Stop::signal);
  EXPECT_EQ(outcome.checkpoint, checkpoint::step_folder(files.folder("c"), 7));
  std::vector<std::string> notes;
  outcome = run_here(toml(), in(files, "c"), true, 13, &notes);
  EXPECT_EQ(outcome.step, 13);
  EXPECT_EQ(notes, std::vector<std::string>{"resumed at step 7 from " +
                                            checkpoint::step_folder(files.folder("c"), 7).string()});
  EXPECT_TRUE(run_here(toml(), in(files, "c"), true).finished);
  expect_same(files, "a", "c");

  // Another seed gives another run: the comparison can fail.
  run_here(toml(), in(files, "d", {"train.seed=2"}), false, 2);
  EXPECT_NE(metrics_of(files.folder("a"))[0], metrics_of(files.folder("d"))[0]);
}

INSTANTIATE_TEST_SUITE_P(Models, Repeat,
                         testing::Values(RepeatCase{"llama", "fp32"}, RepeatCase{"llama", "bf16"},
                                         RepeatCase{"gpt", "fp16"}),
                         [](const auto& info) { return info.param.family + "_" + info.param.dtype; });

TEST(Resume, AFinishedRunIsExtendedWhenStepsGrow) {
  const RunFiles files;
  const std::string toml = files.toml();
  run_here(toml, in(files, "a"));
  EXPECT_TRUE(run_here(toml, in(files, "b", {"train.steps=10"})).finished);
  std::vector<std::string> notes;
  EXPECT_TRUE(run_here(toml, in(files, "b", {"train.steps=10"}), true, 0, &notes).finished);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[1], "nothing to do: 10 of 10 steps are done; increase train.steps to continue");
  EXPECT_EQ(metrics_of(files.folder("b")).size(), 10u);
  EXPECT_TRUE(run_here(toml, in(files, "b"), true).finished);
  expect_same(files, "a", "b");
}

// A kill between a checkpoint and best.json keeps the checkpoint, which records that it was the best.
TEST(Resume, TheBestCheckpointIsKnownWhereBestJsonWasNotWritten) {
  const RunFiles files;
  const std::string toml = files.toml();
  run_here(toml, in(files, "a"));
  run_here(toml, in(files, "b", {"train.steps=10"}));
  const auto best = checkpoint::read_best(files.folder("b"));
  ASSERT_TRUE(best && best->step == 10);
  std::filesystem::remove(files.folder("b") / "best.json");
  run_here(toml, in(files, "b"), true, 12);
  EXPECT_EQ(checkpoint::read_best(files.folder("b")), best);
  run_here(toml, in(files, "b"), true);
  expect_same(files, "a", "b");
}

// A corrupt best.json is no obstacle: the checkpoints record which was the best.
TEST(Resume, TheBestCheckpointIsKnownWhereBestJsonIsDamaged) {
  const RunFiles files;
  const std::string toml = files.toml();
  run_here(toml, in(files, "a"));
  run_here(toml, in(files, "b", {"train.steps=10"}));
  const auto best = checkpoint::read_best(files.folder("b"));
  ASSERT_TRUE(best);
  for (const char* text : {"", "{\"step\":", "{}"}) {
    base::write_file_atomically(files.folder("b") / "best.json", text);
    Child child({"train", toml, "--resume", "--set", "train.steps=10", "train.folder=" + files.folder("b").string()},
                files.file("said"));
    EXPECT_EQ(child.wait(), 0);
    const std::string said = base::read_file(files.file("said"));
    EXPECT_NE(said.find("; the best is taken from the checkpoints\n"), std::string::npos) << said;
    EXPECT_EQ(said.find("error: "), std::string::npos) << said;
    EXPECT_EQ(checkpoint::read_best(files.folder("b")), best);
  }
  run_here(toml, in(files, "b"), true);
  expect_same(files, "a", "b");
}

// The run completes, and reports what is lost.
TEST(Resume, ARunWhoseMetricsAreRemovedEndsWithAnError) {
  const RunFiles files;
  const std::filesystem::path run = files.folder("run");
  Child child({"train", files.toml(), "--set", "train.steps=100000", "train.evaluate_every=0", "checkpoint.every=0"},
              files.file("said"));
  ASSERT_TRUE(wait_for([&] { return lines_of(run / "metrics.jsonl") >= 3; })) << base::read_file(files.file("said"));
  std::filesystem::remove(run / "metrics.jsonl");
  child.send(SIGTERM);
  EXPECT_EQ(WEXITSTATUS(child.wait()), 1);
  const std::string said = base::read_file(files.file("said"));
  EXPECT_NE(said.find("error: [metrics] \"" + (run / "metrics.jsonl").string() +
                      "\" was removed or replaced while the run wrote to it: lines of its steps are lost, the "
                      "checkpoints are whole; leave a run's files in place until the run has ended\n"),
            std::string::npos)
      << said;
  EXPECT_EQ(checkpoint::list(run).size(), 1u);
}

// Files written into a new folder of the same name are not part of the run.
TEST(Resume, ARunWhoseFolderIsTakenAwayEndsWithAnError) {
  const RunFiles files;
  for (const bool moved : {false, true}) {
    const std::filesystem::path run = files.folder("run");
    Child child({"train", files.toml(), "--set", "train.steps=100000", "train.evaluate_every=0", "checkpoint.every=0"},
                files.file("said"));
    ASSERT_TRUE(wait_for([&] { return lines_of(run / "metrics.jsonl") >= 3; })) << base::read_file(files.file("said"));
    std::error_code error;
    if (moved) {
      std::filesystem::rename(run, files.folder("moved"), error);
    } else {
      std::filesystem::remove_all(run, error);
    }
    EXPECT_FALSE(error);
    EXPECT_EQ(WEXITSTATUS(child.wait()), 1);
    const std::string said = base::read_file(files.file("said"));
    EXPECT_NE(
        said.find("error: [train] \"" + run.string() +
                  "\" was removed or moved while the run used it: its metrics and checkpoints are lost, or lie where "
                  "it was moved to; leave a run's folder in place until the run has ended\n"),
        std::string::npos)
        << said;
    EXPECT_FALSE(std::filesystem::exists(run));
  }
}

// kill -9 at various times: at start, between steps, during saves.
TEST(Resume, AKilledRunGoesOnFromItsLastCheckpoint) {
  const RunFiles files;
  const std::string toml = files.toml();
  const auto arguments = [&](const std::string& run) {
    std::vector<std::string> words = {
        "train", toml, "--set", "train.steps=60", "train.folder=" + files.folder(run).string(), "checkpoint.every=3"};
    if (std::filesystem::exists(files.folder(run) / "config.toml")) words.emplace_back("--resume");
    return words;
  };
  ASSERT_EQ(Child(arguments("a"), files.file("a.txt")).wait(), 0) << base::read_file(files.file("a.txt"));
  const std::filesystem::path metrics = files.folder("b") / "metrics.jsonl";
  const auto key = kernels::random_key(static_cast<uint64_t>(::getpid()), "moments");
  int kills = 0;
  for (uint64_t i = 0; i < 9; ++i) {
    const uint32_t word = kernels::random_word(key, 0, i);
    const auto saved = checkpoint::list(files.folder("b"));
    const int64_t begin = saved.empty() ? 0 : saved.back().step;
    if (begin >= 60) break;
    Child child(arguments("b"), files.file("b.txt"));
    if (i % 4 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(word % 200));
    } else {
      const int64_t before = lines_of(metrics);
      const auto moved = [&] {
        const int64_t now = lines_of(metrics);
        return !child.running() || (now != before && now >= begin + 1 + word % 9);
      };
      ASSERT_TRUE(wait_for(moved)) << base::read_file(files.file("b.txt"));
      std::this_thread::sleep_for(std::chrono::microseconds(word / 16 % 12000));
    }
    child.send(SIGKILL);
    const int status = child.wait();
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << base::read_file(files.file("b.txt"));
    kills += WIFSIGNALED(status);
  }
  EXPECT_GE(kills, 4);
  ASSERT_EQ(Child(arguments("b"), files.file("b.txt")).wait(), 0) << base::read_file(files.file("b.txt"));
  fmt::print("{} kills\n", kills);
  expect_same(files, "a", "b");
}

// bad_input_test.cpp checks the message.
TEST(Resume, ARunThatWasToldToStopGoesOnToTheSameBits) {
  const RunFiles files;
  const std::string toml = files.toml();
  // 42 steps: a stop may skip a long validation, such as after step 40.
  run_here(toml, in(files, "a", {"train.steps=2000"}), false, 42);
  const std::vector<std::string> arguments = {"train", toml, "--set", "train.steps=2000",
                                              "train.folder=" + files.folder("b").string()};
  Child child(arguments, files.file("b.txt"));
  ASSERT_TRUE(wait_for([&] { return lines_of(files.folder("b") / "metrics.jsonl") >= 3; }));
  child.send(SIGTERM);
  EXPECT_EQ(child.wait(), 0) << base::read_file(files.file("b.txt"));
  const int64_t done = lines_of(files.folder("b") / "metrics.jsonl");
  ASSERT_LT(done, 2000);
  EXPECT_EQ(checkpoint::list(files.folder("b")).back().step, done);
  if (done < 42) run_here(toml, in(files, "b", {"train.steps=2000"}), true, 42);
  auto mine = metrics_of(files.folder("b")), other = metrics_of(files.folder("a"));
  ASSERT_EQ(other.size(), 42u);
  ASSERT_GE(mine.size(), 42u);
  other.resize(40);
  mine.resize(40);
  EXPECT_EQ(mine, other);
}

}  // namespace kintsugi::tests::repeat_test
