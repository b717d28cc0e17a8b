// Runs on several ranks as threads: the numbers of one rank, ways to stop, bad input.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kintsugi/base/processor.h"
#include "kintsugi/checkpoint/folder.h"
#include "tests/layouts.h"
#include "tests/ranks_folder.h"

namespace kintsugi::tests::ranks_test {
namespace {

class Ranks : public testing::Test, protected RanksFolder {
 protected:
  Ended train(const std::string& run, const std::string& layout, const std::string& sets = "") {
    const Ended ended = run_kintsugi(folder.path(), arguments(run, layout, sets));
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended;
  }

  // Also the best checkpoint, its step and its loss.
  void expect_same_best(const std::string& one, const std::string& other) const {
    const auto a = checkpoint::read_best(folder / one), b = checkpoint::read_best(folder / other);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->step, b->step);
    EXPECT_NEAR(a->validation_loss, b->validation_loss, 1e-5 * a->validation_loss);
  }

  // Also with check, which does not train.
  void expect_error(const std::string& sets, const std::string& line) {
    for (const char* verb : {"check", "train"}) {
      const Ended ended =
          run_kintsugi(folder.path(), std::string(verb) + " run.toml --set train.folder=refused " + sets);
      EXPECT_EQ(ended.code, 1) << sets;
      EXPECT_EQ(complaint(ended.err), line) << verb << " " << sets;
    }
    EXPECT_FALSE(fs::exists(folder / "refused/metrics.jsonl"));
  }
  void expect_rule_error(const std::string& rule, const std::string& what) {
    expect_error("parallel.data=2 parallel.tensor=2 'parallel.rules=[\"" + rule + "\"]'",
                 "error: [plan] rule \"" + rule + "\"" + what + "\n");
  }
};

}  // namespace

TEST_F(Ranks, EveryLayoutHasTheNumbersOfOneRank) {
  train("one", "");
  ASSERT_EQ(steps("one"), 12);
  for (const std::string layout :
       {"ranks=2", "data=2 zero=3", "tensor=2", "tensor=2 sequence_parallel=true", "context=2 context_method=ring",
        "data=4 zero=1", "context=4 context_method=gathered", "data=2 tensor=2 zero=3 sequence_parallel=true",
        "tensor=2 context=2 context_method=ring",
        "data=2 context=2 zero=2 shard_context=true context_method=ulysses"}) {
    SCOPED_TRACE(layout);
    const std::string run = fmt::format("run_{}", std::hash<std::string>()(layout));
    const Ended ended = train(run, layout);
    EXPECT_EQ(difference("one", run, 1e-5), "");
    expect_same_best("one", run);
    EXPECT_EQ(ended.out.substr(ended.out.rfind("done: ")), "done: 12 steps, in " + run + "\n");
  }
}

TEST_F(Ranks, TheOptionStandsForTheKey) {
  EXPECT_EQ(run_kintsugi(folder.path(), "train run.toml --ranks 2 --set train.folder=a").code, 0);
  train("b", "data=2");
  EXPECT_EQ(difference("a", "b", 0), "");
}

TEST_F(Ranks, MoreRanksThanCoresIsAWarning) {
  const int cores = base::usable_cores();
  const Ended ended =
      train("many", fmt::format("ranks={}", 2 * cores), fmt::format("train.steps=2 train.global_batch={}", 2 * cores));
  EXPECT_EQ(ended.err.substr(0, ended.err.find('\n')),
            fmt::format("warning: --set: {0} ranks of 1 thread each on {1} core{2}: they take "
                        "turns, and a step takes at least 2.0 times as long as on {0} cores",
                        2 * cores, cores, cores == 1 ? "" : "s"));
}

// A run stopped by a signal at any point and resumed equals one run: the same bits in the same layout.
TEST_F(Ranks, StoppedAndResumed) {
  const std::string sets = "train.steps=200 train.learning_rate=1e-4 checkpoint.every=0 train.evaluate_every=50";
  const std::string layout = "data=2 tensor=2 zero=2";
  train("whole", layout, sets);
  struct Other {
    std::string layout;
    int signal;
    double tolerance;
  };
  for (const Other& other : {Other{layout, SIGINT, 0}, Other{"data=1", SIGTERM, 1e-5},
                             Other{"tensor=2 context=2 context_method=ring", SIGTERM, 1e-5}}) {
    SCOPED_TRACE(other.layout);
    fs::remove_all(folder / "parts");
    Process process(folder.path(), arguments("parts", layout, sets));
    ASSERT_TRUE(process.wait_for([&] { return steps("parts") >= 3; }));
    process.send(other.signal);
    const Ended ended = process.wait();
    EXPECT_EQ(ended.code, 0) << ended.err;
    const int64_t step = steps("parts");
    ASSERT_LT(step, 200);
    EXPECT_EQ(
        ended.out,
        fmt::format("{2}checkpoint parts/step_{0:08}\nstopped after step {0} (signal); continue with: kintsugi train "
                    "run.toml --resume --set train.folder=parts {1} parallel.data=2 parallel.tensor=2 "
                    "parallel.zero=2\n",
                    step, sets, ended.out.substr(0, ended.out.find("checkpoint "))));
    const Ended resumed = run_kintsugi(folder.path(), arguments("parts", other.layout, sets + " --resume --set"));
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(difference("whole", "parts", other.tolerance), "");
  }
}

TEST_F(Ranks, ATimeLimitStopsAllAfterOneStep) {
  const std::string sets =
      "train.steps=1000000 train.stop_after_minutes=0.004 checkpoint.every=0 train.evaluate_every=0";
  const Ended ended = train("timed", "data=4 zero=3", sets);
  const int64_t step = steps("timed");
  const std::string saved = fmt::format("timed/step_{:08}", step);
  EXPECT_EQ(ended.out.substr(0, ended.out.find(';')),
            fmt::format("checkpoint {}\nstopped after step {} (stop_after_minutes)", saved, step));
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_TRUE(fs::exists(folder / saved / fmt::format("rank_{:05}.safetensors", rank))) << rank;
  const Ended resumed = train("timed", "tensor=2", fmt::format("train.steps={} --resume --set", step + 1));
  EXPECT_NE(resumed.err.find(fmt::format("resumed at step {} from {}\n", step, saved)), std::string::npos);
}

// The earlier checkpoint is complete, and the run continues from it.
TEST_F(Ranks, AKilledRunGoesOn) {
  const std::string sets = "train.steps=200 train.learning_rate=1e-4 checkpoint.every=40 train.evaluate_every=0";
  train("whole", "data=2 zero=3", sets);
  Process process(folder.path(), arguments("parts", "data=2 zero=3", sets));
  ASSERT_TRUE(process.wait_for([&] { return fs::exists(folder / "parts/step_00000040"); }));
  process.send(SIGKILL);
  EXPECT_EQ(process.wait().signal, SIGKILL);
  EXPECT_EQ(run_kintsugi(folder.path(), arguments("parts", "data=2 zero=3", sets + " --resume --set")).code, 0);
  EXPECT_EQ(difference("whole", "parts", 0), "");
}

TEST_F(Ranks, SizesThatDoNotFit) {
  expect_error("parallel.data=3",
               "error: [config] --set: train.global_batch = 8 is not divisible by mesh axis \"data\" of size 3; "
               "nearest: 6, 9\n");
  expect_error("parallel.ranks=6 parallel.data=2 parallel.tensor=2",
               "error: [config] --set: parallel.ranks = 6 is not data 2 x tensor 2 x context 1 = 4; leave ranks out, "
               "or set data = 3\n");
  expect_error("parallel.shard_group=3 parallel.data=4 parallel.zero=1",
               "error: [config] --set: parallel.shard_group = 3 does not divide mesh axis \"data\" of size 4; nearest: "
               "2, 4\n");
  expect_error("train.reproducible=4 parallel.data=3 train.global_batch=12",
               "error: [config] --set: train.reproducible = 4 is not divisible by mesh axis \"data\" of size 3; data "
               "must be a power of two too\n");
  expect_error("parallel.timeout_seconds=0",
               "error: [config] --set: parallel.timeout_seconds = 0 is out of range; it must be a number above 0\n");
  expect_error("parallel.transport=tcp",
               "error: [config] --set: parallel.transport = \"tcp\" is not one of auto, threads, mpi\n");
  expect_error("parallel.mesh_order=data parallel.data=2",
               "error: [config] --set: parallel.mesh_order = \"data\" must name each of data, context and tensor once, "
               "outermost first, and may name pipe, expert and space\n");
  expect_error("parallel.tensor=8",
               "error: [plan] dim \"kv_heads\" of size 4, with \"group\" of size 1, is smaller than mesh axis "
               "\"tensor\" of size 8; nearest kv_heads: 8; nearest tensor: 4\n");
  expect_error("parallel.context=32",
               "error: [plan] dim \"seq\" of size 16 is smaller than mesh axis \"context\" of size 32; nearest seq: "
               "32; nearest context: 16\n");
}

TEST_F(Ranks, RulesThatAreWrong) {
  const std::string form =
      "; write \"dim [in family] -> axes [, padded] [, in steps]\", such as \"embed in contract -> tensor, padded\"";
  expect_rule_error("embed tensor", " has no \"->\"" + form);
  expect_rule_error("ffn -> tensor tensor", " names axis \"tensor\" twice" + form);
  expect_rule_error("embed in contract -> tensor, paded",
                    " ends in \"paded\", which is neither \"padded\" nor \"in steps\"" + form);
  expect_rule_error("embed -> pipe", ": there is no axis \"pipe\"; there are data, context, tensor");
  expect_rule_error("width -> tensor",
                    ": there is no dim \"width\"; there are vocab, embed, position, batch, seq, kv_heads, group, "
                    "head_dim, key_seq, ffn, flat");
  expect_rule_error("flat -> tensor",
                    ": flat is all of a bucket of parameters as one dim, which only states have; write \"flat in "
                    "weight\", \"flat in gradient\" or \"flat in optimizer\"");
  expect_rule_error("ffn in weight -> tensor, in steps", ": a state is not taken in steps; leave \"in steps\" out");
}

// What an operation does not support, by name.
TEST_F(Ranks, StrategiesThatAnOperationCannotTake) {
  expect_rule_error("head_dim in attention -> tensor", ": attention needs \"head_dim\" whole");
  expect_rule_error("key_seq in attention -> tensor",
                    ": attention takes \"key_seq\" whole or in steps; add \", in steps\"");
  expect_rule_error("seq in attention -> tensor, in steps",
                    ": attention cannot take \"seq\" in steps; attention can take \"key_seq\"");
  expect_rule_error("embed -> tensor, in steps",
                    ": no operation can take \"embed\" in steps; attention can take \"key_seq\"");
}

// Not from sizes in [parallel], which give each axis a dim.
TEST(RanksThatOnlyRepeat, AreAnError) {
  const config::Settings s = small_model("gpt", "fp64");
  const plan::Plan none = {.mesh = mesh::Mesh({{"context", 2}}), .rules = {}};
  EXPECT_EQ(
      error_of([&] { train::LayoutRun(s, none); }),
      "[partition] mesh axis \"context\" of size 2: no operation of the step has a dim that it could split, so "
      "that ranks would only repeat work; make the axis smaller, give it a dim by [parallel] rules, or ask for it "
      "with allow_repeat = true");
}

}  // namespace kintsugi::tests::ranks_test
