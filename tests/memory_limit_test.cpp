// Runs that exceed their memory limit: proposed changes save as much as stated, and train refuses in one line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/compile/fit.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/train/require_memory.h"
#include "kintsugi/train/worlds.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tests/small_model.h"
#include "tests/small_run.h"

namespace kintsugi::tests::memory_limit_test {
namespace {

using compile::Excess;

config::Settings two_stages() {
  config::Settings s = small_model("gpt", "fp32");
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

// Bytes of the largest rank with these settings changed.
int64_t with(config::Settings s, const std::string& key, const std::string& value) {
  config::Parallel& p = s.parallel;
  if (key == "train.micro_batch") s.train.micro_batch = std::stoll(value);
  if (key == "parallel.zero") p.zero = std::stoll(value);
  if (key == "parallel.recompute") p.recompute = value.substr(1, value.size() - 2);
  if (key == "parallel.tensor") p.tensor = 2, p.data = 1;
  if (key == "parallel.pipe") p.pipe = 4, p.data = 1;
  if (key == "parallel.offload") p.offload = value.substr(1, value.size() - 2);
  int64_t most = 0;
  for (const program::Program& q : compile::compile({.settings = s, .kernels = *compile::kernels_of(s)}))
    most = std::max(most, q.bytes());
  return most;
}

std::optional<Excess> over(config::Settings s, const std::vector<program::Program>& stages, int64_t bytes) {
  s.parallel.memory_per_rank = fmt::format("{}B", bytes);
  return compile::excess(s, stages, {});
}

// The limit ends a candidate after any of its passes, also on a machine so busy that each pass takes a second.
TEST(MemoryLimits, ChangesHaveABudgetOfTime) {
  config::Settings s = two_stages();
  const auto stages = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
  s.parallel.memory_per_rank = "1kB";
  for (const double seconds : {0., 30., 31.}) {
    double clock = 0;
    int64_t tried = 0;
    const auto e = compile::excess(
        s, stages, {}, -1,
        {.trying = [&](int64_t, int64_t) { ++tried; }, .seconds = seconds, .now = [&] { return clock++; }});
    ASSERT_TRUE(e);
    EXPECT_LE(clock, seconds + 2);
    EXPECT_GT(tried, 0);
    EXPECT_TRUE(e->fitting.empty() && !e->together);
    EXPECT_GT(e->not_tried, 3);
    const std::string text = compile::one_line(*e);
    EXPECT_NE(text.find("no change that was tried makes it fit; "), std::string::npos) << text;
    EXPECT_NE(text.find("changes not tried"), std::string::npos) << text;
  }
}

TEST(MemoryLimits, EachChangeSavesWhatItSaysAndFits) {
  const config::Settings s = two_stages();
  const auto stages = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
  const int64_t most = std::max(stages[0].bytes(), stages[1].bytes());
  EXPECT_FALSE(over(s, stages, most));
  const auto e = over(s, stages, most - 1);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->bytes, most);
  EXPECT_EQ(e->stage, stages[0].bytes() == most ? 0 : 1);
  EXPECT_EQ(e->rank, 2 * e->stage);  // pipe is the outermost axis
  std::vector<std::string> keys;
  for (const compile::Saving& saving : e->fitting) {
    const auto& [key, value] = saving.sets[0];
    keys.push_back(key + "=" + config::to_toml(value));
    EXPECT_EQ(saving.bytes, most - with(s, key, config::to_toml(value))) << key;
    EXPECT_GT(saving.bytes, 0) << key;
  }
  // The cheapest change comes first; halving the micro-batch saves most activations.
  const auto at = [&](const std::string& key) { return std::find(keys.begin(), keys.end(), key) - keys.begin(); };
  EXPECT_EQ(at("parallel.zero=1"), 0);
  EXPECT_EQ(at("train.micro_batch=2"), 1);
  EXPECT_LT(at("parallel.zero=2"), at("parallel.recompute=\"full\""));
  EXPECT_LT(at("parallel.recompute=\"full\""), at("parallel.zero=3"));
  EXPECT_LT(at("parallel.zero=3"), at("parallel.tensor=2"));
  // A tighter limit leaves only the changes that save as much.
  const int64_t half = most - with(s, "parallel.recompute", "\"full\"");
  const auto tight = over(s, stages, most - half);
  ASSERT_TRUE(tight);
  for (const compile::Saving& saving : tight->fitting) EXPECT_GE(saving.bytes, half);
  EXPECT_LT(tight->fitting.size(), e->fitting.size());
}

TEST(MemoryLimits, SeveralChangesTogetherWhereNoneIsEnough) {
  const config::Settings s = two_stages();
  const auto stages = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
  const auto all = over(s, stages, 1);
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->fitting.empty());
  EXPECT_FALSE(all->together);
  int64_t most_saved = 0;
  const auto single = over(s, stages, all->bytes - 1);
  ASSERT_TRUE(single);
  for (const compile::Saving& saving : single->fitting) most_saved = std::max(most_saved, saving.bytes);
  const auto e = over(s, stages, all->bytes - most_saved - 1);
  ASSERT_TRUE(e);
  EXPECT_TRUE(e->fitting.empty());
  ASSERT_TRUE(e->together);
  EXPECT_GT(e->together->bytes, most_saved);
  EXPECT_GE(e->together->sets.size(), 2u);
}

// All ranks end with the same error before they allocate anything.
TEST(MemoryLimits, EachRankRefusesWithTheSameText) {
  config::Settings s = two_stages();
  const auto stages = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
  s.parallel.memory_per_rank = "10 kB";
  const std::string expected = "[memory] " + one_line(*compile::excess(s, stages, {}));
  const auto worlds = train::make_worlds(s);
  std::vector<std::string> said(4);
  comm::run_ranks(worlds, [&](comm::World& world) {
    std::vector<int> ranks = {0, 1, 2, 3};
    const auto all = world.group(ranks);
    said[static_cast<size_t>(world.rank())] = error_of([&] { train::require_memory(s, stages, {}, *all); });
  });
  for (const std::string& text : said) EXPECT_EQ(text, expected);
  s.parallel.memory_per_rank = "1 GB";
  comm::run_ranks(worlds, [&](comm::World& world) {
    std::vector<int> ranks = {0, 1, 2, 3};
    train::require_memory(s, stages, {}, *world.group(ranks));
  });
}

// Whatever allocation fails, of the arena, a thread, a library or a few bytes: one error line.
TEST(MemoryLimits, OfTheSystemEndInOneLine) {
  const RunFiles files;
  const TemporaryFolder folder;
  const std::string line("(warning: [^\n]*\n)?error: \\[(run|threads|memory|gemm)\\] [^\n]*\n");
  int runs = 0;
  for (const std::string more : {"offload=optimizer", "offload=optimizer parallel.ranks=2 parallel.data=2",
                                 "offload=none parallel.ranks=2 parallel.pipe=2"}) {
    int refused = 0;
    bool trained = false;
    // From less than the first thread needs, up to a successful run.
    for (int limit = 5000; limit < 500000 && !trained; limit += limit < 40000 ? 7000 : 4000) {
      const Ended ended =
          run_kintsugi(folder.path(),
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
      EXPECT_TRUE(matches(ended.err, line)) << what;
    }
    EXPECT_TRUE(trained) << more;
    EXPECT_GT(refused, 3) << more;
  }
}

}  // namespace
}  // namespace kintsugi::tests::memory_limit_test
