#include "kintsugi/train/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/train/build_program.h"
#include "kintsugi/train/worlds.h"
#include "tests/process.h"
#include "tests/small_model.h"
#include "tests/small_run.h"

namespace kintsugi::train {
namespace {

namespace fs = std::filesystem;

class Groups : public testing::Test {
 protected:
  Groups() {
    std::string name = (fs::temp_directory_path() / "kintsugi_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~Groups() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  fs::path root_;
};

TEST_F(Groups, TheLeastOfAGroupAndThoseAboveIt) {
  write("a/memory.max", "5000000\n");
  write("a/b/memory.max", "max\n");
  write("a/b/c/memory.max", "7000000\n");
  EXPECT_EQ(group_limit(root_, "0::/a/b/c\n"), 5000000);
  EXPECT_EQ(group_limit(root_, "0::/a/b\n"), 5000000);
  EXPECT_EQ(group_limit(root_, "0::/d\n"), 0);
  EXPECT_EQ(group_limit(root_, "0::/\n"), 0);
  EXPECT_EQ(group_limit(root_, "0::/../../a\n"), 0);
  EXPECT_EQ(group_limit(root_, ""), 0);
  EXPECT_EQ(group_limit(root_, "no colons\n"), 0);
}

TEST_F(Groups, VersionOne) {
  write("memory/memory.limit_in_bytes", "9223372036854771712\n");  // what it writes for none
  write("memory/job/memory.limit_in_bytes", "3000000\n");
  write("cpu/job/memory.limit_in_bytes", "1\n");
  EXPECT_EQ(group_limit(root_, "3:cpu,cpuacct:/job\n2:memory:/job/step\n"), 3000000);
  EXPECT_EQ(group_limit(root_, "2:pids,memory:/job\n"), 3000000);
  EXPECT_EQ(group_limit(root_, "2:memory:/\n"), 0);
}

std::string limit(const std::string& per_rank, MachineMemory machine, int64_t ranks) {
  config::Settings s;
  s.parallel.memory_per_rank = per_rank;
  const auto limit = memory_limit(s, machine, ranks);
  return limit ? fmt::format("{}: {}", limit->bytes, limit->from) : "none";
}

TEST(MemoryLimits, WhatIsGivenElseTheSmallerOfMachineAndGroup) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  EXPECT_EQ(limit("1 GiB", {8 * kGiB, 4 * kGiB}, 4), "1073741824: [parallel] memory_per_rank");
  EXPECT_EQ(limit("", {8 * kGiB, 4 * kGiB}, 4), "1073741824: the control group's 4.0 GiB over 4 ranks");
  EXPECT_EQ(limit("", {8 * kGiB, 16 * kGiB}, 2), "4294967296: this machine's 8.0 GiB over 2 ranks");
  EXPECT_EQ(limit("", {8 * kGiB, 0}, 1), "8589934592: this machine's 8.0 GiB");
  EXPECT_EQ(limit("", {0, 4 * kGiB}, 1), "4294967296: the control group's 4.0 GiB");
  EXPECT_EQ(limit("", {}, 1), "none");
  EXPECT_GT(machine_memory().machine, kGiB / 4);
}

TEST(MemoryLimits, TheWholeText) {
  Excess e = {
      .stage = 1,
      .stages = 4,
      .rank = 2,
      .bytes = 86'859'678'144,
      .limit = {68'719'476'736, "[parallel] memory_per_rank"},
      .largest = {{"activations", 34'388'836'352}, {"optimizer", 33'873'002'496}, {"gradients", 11'291'000'832}},
      .fitting = {{{{"parallel.zero", "1"}}, 30'000'000'000, true},
                  {{{"parallel.tensor", "4"}, {"parallel.data", "1"}}, 40'000'000'000, true}},
      .together = {}};
  const std::string head =
      "rank 2 (stage 1 of 4) needs 86,859,678,144 bytes (80.9 GiB) and may use 68,719,476,736 bytes (64.0 GiB), "
      "[parallel] memory_per_rank; most of it is activations 32.0 GiB, optimizer 31.5 GiB, gradients 10.5 GiB";
  EXPECT_EQ(one_line(e), head +
                             "; parallel.zero = 1 saves 30,000,000,000 bytes (27.9 GiB) and fits; parallel.tensor = "
                             "4, parallel.data = 1 saves 40,000,000,000 bytes (37.3 GiB) and fits");
  EXPECT_EQ(describe(e).size(), 3u);
  e.fitting.clear();
  EXPECT_EQ(one_line(e),
            head + "; nothing that could be changed here makes it fit; it needs more ranks or more memory");
  e.together = {{{"train.micro_batch", "1"}, {"parallel.recompute", "\"full\""}}, 50'000'000'000, true};
  e.stages = 1;
  e.rank = 0;
  EXPECT_EQ(
      one_line(e),
      "rank 0 needs 86,859,678,144 bytes (80.9 GiB) and may use 68,719,476,736 bytes (64.0 GiB), [parallel] "
      "memory_per_rank; most of it is activations 32.0 GiB, optimizer 31.5 GiB, gradients 10.5 GiB; no change alone "
      "is enough; together they are: train.micro_batch = 1, parallel.recompute = \"full\" saves 50,000,000,000 "
      "bytes (46.6 GiB) and fits");
}

config::Settings two_stages() {
  config::Settings s = tests::small_model("gpt", "fp32");
  s.model.layers = 4;
  s.model.context = s.train.sequence = 64;
  s.train.global_batch = 16;
  s.train.micro_batch = 4;
  s.parallel.pipe = 2;
  s.parallel.data = 2;
  s.parallel.ranks = 4;
  s.parallel.transport = "threads";
  return s;
}

// The bytes of the rank that needs most where these settings are changed so.
int64_t with(config::Settings s, const std::string& key, const std::string& value) {
  config::Parallel& p = s.parallel;
  if (key == "train.micro_batch") s.train.micro_batch = std::stoll(value);
  if (key == "parallel.zero") p.zero = std::stoll(value);
  if (key == "parallel.recompute") p.recompute = value.substr(1, value.size() - 2);
  if (key == "parallel.tensor") p.tensor = 2, p.data = 1;
  if (key == "parallel.pipe") p.pipe = 4, p.data = 1;
  if (key == "parallel.offload") p.offload = value.substr(1, value.size() - 2);
  int64_t most = 0;
  for (const program::Program& q : build_programs(s, *kernels_of(s))) most = std::max(most, q.bytes());
  return most;
}

TEST(MemoryLimits, EachChangeSavesWhatItSaysAndFits) {
  const config::Settings s = two_stages();
  const auto stages = build_programs(s, *kernels_of(s));
  const int64_t most = std::max(stages[0].bytes(), stages[1].bytes());
  EXPECT_FALSE(excess(s, stages, {most, "here"}));
  const auto e = excess(s, stages, {most - 1, "here"});
  ASSERT_TRUE(e);
  EXPECT_EQ(e->bytes, most);
  EXPECT_EQ(e->stage, stages[0].bytes() == most ? 0 : 1);
  EXPECT_EQ(e->rank, 2 * e->stage);  // pipe is the outermost axis
  std::vector<std::string> keys;
  for (const Change& change : e->fitting) {
    const auto& [key, value] = change.sets[0];
    keys.push_back(key + "=" + value);
    EXPECT_EQ(change.saves, most - with(s, key, value)) << key;
    EXPECT_GT(change.saves, 0) << key;
  }
  // What costs less comes first, and half a micro-batch saves most of the activations.
  const auto at = [&](const std::string& key) { return std::find(keys.begin(), keys.end(), key) - keys.begin(); };
  EXPECT_EQ(at("parallel.zero=1"), 0);
  EXPECT_EQ(at("train.micro_batch=2"), 1);
  EXPECT_LT(at("parallel.zero=2"), at("parallel.recompute=\"full\""));
  EXPECT_LT(at("parallel.recompute=\"full\""), at("parallel.zero=3"));
  EXPECT_LT(at("parallel.zero=3"), at("parallel.tensor=2"));
  // A tighter limit leaves only those that save as much.
  const int64_t half = most - with(s, "parallel.recompute", "\"full\"");
  const auto tight = excess(s, stages, {most - half, "here"});
  ASSERT_TRUE(tight);
  for (const Change& change : tight->fitting) EXPECT_GE(change.saves, half);
  EXPECT_LT(tight->fitting.size(), e->fitting.size());
}

TEST(MemoryLimits, SeveralChangesTogetherWhereNoneIsEnough) {
  const config::Settings s = two_stages();
  const auto stages = build_programs(s, *kernels_of(s));
  const auto all = excess(s, stages, {1, "here"});
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->fitting.empty());
  EXPECT_FALSE(all->together);
  int64_t most_saved = 0;
  const auto single = excess(s, stages, {all->bytes - 1, "here"});
  ASSERT_TRUE(single);
  for (const Change& change : single->fitting) most_saved = std::max(most_saved, change.saves);
  const auto e = excess(s, stages, {all->bytes - most_saved - 1, "here"});
  ASSERT_TRUE(e);
  EXPECT_TRUE(e->fitting.empty());
  ASSERT_TRUE(e->together);
  EXPECT_GT(e->together->saves, most_saved);
  EXPECT_GE(e->together->sets.size(), 2u);
}

// All ranks end with one text, before they have allocated anything.
TEST(MemoryLimits, EachRankRefusesWithTheSameText) {
  config::Settings s = two_stages();
  const auto stages = build_programs(s, *kernels_of(s));
  s.parallel.memory_per_rank = "10 kB";
  const MemoryLimit limit = *memory_limit(s);
  const std::string expected = "[memory] " + one_line(*excess(s, stages, limit));
  const auto worlds = make_worlds(s);
  std::vector<std::string> said(4);
  comm::run_ranks(worlds, [&](comm::World& world) {
    std::vector<int> ranks = {0, 1, 2, 3};
    const auto all = world.group(ranks);
    said[static_cast<size_t>(world.rank())] = tests::error_of([&] { require_memory(s, stages, *all); });
  });
  for (const std::string& text : said) EXPECT_EQ(text, expected);
  s.parallel.memory_per_rank = "1 GB";
  comm::run_ranks(worlds, [&](comm::World& world) {
    std::vector<int> ranks = {0, 1, 2, 3};
    require_memory(s, stages, *world.group(ranks));
  });
}

// Whatever cannot be had, the arena, a thread, room for a library, or a few bytes somewhere: one line says so.
TEST(MemoryLimits, OfTheSystemEndInOneLine) {
  const tests::RunFiles files;
  const tests::TemporaryFolder folder;
  const std::regex line("(warning: [^\n]*\n)?error: \\[(run|threads|memory|gemm)\\] [^\n]*\n");
  int runs = 0;
  for (const std::string more : {"offload=optimizer", "offload=optimizer parallel.ranks=2 parallel.data=2",
                                 "offload=none parallel.ranks=2 parallel.pipe=2"}) {
    int refused = 0;
    bool trained = false;
    // From less than the first thread takes, until it trains.
    for (int limit = 5000; limit < 500000 && !trained; limit += limit < 40000 ? 7000 : 4000) {
      const tests::Ended ended = tests::run_kintsugi(
          folder.path(),
          fmt::format("train '{}' --set model.layers=4 model.embed=256 train.steps=1 train.warmup_steps=0 "
                      "train.evaluate_every=0 train.folder='{}' parallel.{}",
                      files.toml(), files.folder(fmt::format("run_{}", ++runs)).string(), more),
          fmt::format("ulimit -c 0 && ulimit -d {}", limit));
      const std::string what = fmt::format("{}, {} KiB: {}", more, limit, ended.err);
      ASSERT_EQ(ended.signal, 0) << what;
      trained = ended.code == 0;
      if (trained) continue;
      ++refused;
      EXPECT_EQ(ended.code, 1) << what;
      EXPECT_TRUE(std::regex_match(ended.err, line)) << what;
    }
    EXPECT_TRUE(trained) << more;
    EXPECT_GT(refused, 3) << more;
  }
}

}  // namespace
}  // namespace kintsugi::train
