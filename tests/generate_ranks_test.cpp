// `kintsugi generate` and `kintsugi evaluate` on several ranks, as threads and as processes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "kintsugi/base/file.h"
#include "tests/mpi_launch.h"
#include "tests/paths.h"
#include "tests/patterns.h"
#include "tests/ranks_folder.h"

namespace kintsugi::tests::generate_ranks_test {
namespace {

const std::string kGreedy = "generate run --temperature 0 --length 40 --prompt \"Line 1\"";

// A run of a few steps, created once.
class TrainedFolder : public RanksFolder {
 public:
  TrainedFolder() {
    const std::string sets = "model.layers=4 train.learning_rate=1e-2 train.evaluate_every=0";
    EXPECT_EQ(run_kintsugi(folder.path(), arguments("run", "", sets)).code, 0);
    text = say(kGreedy).out;
    loss = loss_of(say("evaluate run"));
  }

  Ended say(const std::string& arguments) const { return run_kintsugi(folder.path(), arguments); }
  Ended launch(const Mpi& mpi, int ranks, const std::string& arguments) const {
    return run_kintsugi(folder.path(), arguments, ":", mpi.run + " -n " + std::to_string(ranks));
  }
  const fs::path& path() const { return folder.path(); }
  using RanksFolder::complaint;

  // "run/step_00000012 corpus/validation 1,674" and the loss.
  static std::pair<std::string, double> loss_of(const Ended& ended) {
    const std::vector<std::string> found =
        groups(ended.out, "checkpoint (\\S+)\ndata       (\\S+), (\\S+) tokens\nloss       (\\S+)\nperplexity .*\n");
    if (found.empty()) return {"no loss: " + ended.out + ended.err, 0};
    return {fmt::format("{} {} {}", found[1], found[2], found[3]), std::stod(found[4])};
  }

  std::string text;  // of one rank
  std::pair<std::string, double> loss;
};

class GenerateRanks : public testing::Test {
 protected:
  static void SetUpTestSuite() { trained_ = std::make_unique<TrainedFolder>(); }
  static void TearDownTestSuite() { trained_.reset(); }

  static void expect_error(const std::string& arguments, const std::string& line) {
    const Ended ended = trained_->say(arguments);
    EXPECT_EQ(ended.code, 1) << arguments;
    EXPECT_EQ(TrainedFolder::complaint(ended.err), "error: " + line + "\n");
    EXPECT_EQ(ended.out, "");
  }
  static void expect_loss(const Ended& ended, const std::string& where) {
    const auto [what, loss] = TrainedFolder::loss_of(ended);
    EXPECT_EQ(what, trained_->loss.first) << where;
    EXPECT_NEAR(loss, trained_->loss.second, 2e-6 * loss) << where;
    EXPECT_EQ(TrainedFolder::complaint(ended.err), "") << where;
  }

  static std::unique_ptr<TrainedFolder> trained_;
};
std::unique_ptr<TrainedFolder> GenerateRanks::trained_;

class GenerateUnderMpi : public GenerateRanks, public testing::WithParamInterface<Mpi> {
 protected:
  void SetUp() override {
    if (!is_there(GetParam())) GTEST_SKIP() << "no " << GetParam().module << ", or no " << GetParam().run;
  }
};

}  // namespace

TEST_F(GenerateRanks, SayWhatOneRankSays) {
  ASSERT_GT(trained_->text.size(), 30u);
  for (const std::string layout : {"parallel.tensor=2", "parallel.pipe=2", "parallel.pipe=2 parallel.tensor=2",
                                   "parallel.data=2 parallel.zero=3", "parallel.pipe=4 parallel.stages=\"1 1 1 1\""}) {
    const Ended ended = trained_->say(kGreedy + " --set '" + replaced(layout, " parallel", "' 'parallel") + "'");
    EXPECT_EQ(ended.code, 0) << layout;
    EXPECT_EQ(ended.out, trained_->text) << layout;
    EXPECT_EQ(TrainedFolder::complaint(ended.err), "") << layout;
  }
}

TEST_F(GenerateRanks, ThatRepeatWorkAreTold) {
  const Ended ended = trained_->say(kGreedy + " --ranks 2");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.out, trained_->text);
  EXPECT_EQ(TrainedFolder::complaint(ended.err),
            "warning: mesh axis \"data\" splits nothing of one text: its ranks repeat the work of one\n");
}

TEST_F(GenerateRanks, EndAtOneStopText) {
  const std::string drawn = "generate run --length 60 --seed 3 --top-k 9 --prompt Line --stop e";
  const Ended one = trained_->say(drawn), two = trained_->say("generate --set parallel.pipe=2 run" + drawn.substr(12));
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(two.out, one.out);
  EXPECT_LT(one.out.size(), 60u);
}

TEST_F(GenerateRanks, EndAtASignal) {
  Process process(trained_->path(), "generate run --temperature 0 --length 100000000 --set parallel.pipe=2");
  const auto is_long = [](const fs::directory_entry& file) {
    return file.path().extension() == ".out" && file.file_size() > 4000;
  };
  ASSERT_TRUE(process.wait_for([&] {
    const fs::directory_iterator files(trained_->path());
    return std::any_of(begin(files), end(files), is_long);
  }));
  process.send(SIGINT);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out.back(), '\n');
}

TEST_F(GenerateRanks, EvaluateAsOneRankDoes) {
  ASSERT_GT(trained_->loss.second, 0) << trained_->loss.first;
  for (const std::string layout :
       {"parallel.ranks=2", "parallel.tensor=2 parallel.sequence_parallel=true", "parallel.pipe=2",
        "parallel.context=2", "parallel.pipe=2 parallel.data=2 parallel.zero=3"})
    expect_loss(trained_->say("evaluate run --set " + layout), layout);
}

// Several prompts are continued concurrently and printed in order.
TEST_F(GenerateRanks, SayWhatEachPromptSaysAlone) {
  const std::string greedy = "generate run --temperature 0 --length 40";
  const std::vector<std::string> prompts = {"Line 1", "A text that is longer than the other ones", "Li"};
  std::string given, want;
  std::ofstream lines(trained_->path() / "lines.txt");
  for (size_t i = 0; i < prompts.size(); ++i) {
    given += " --prompt '" + prompts[i] + "'";
    lines << prompts[i] << (i % 2 == 0 ? "\r\n" : "\n");
    want += fmt::format("{}==> {}: {} <==\n{}", i > 0 ? "\n" : "", i + 1, prompts[i],
                        trained_->say(greedy + " --prompt '" + prompts[i] + "'").out);
  }
  lines.close();
  std::ofstream(trained_->path() / "marked.txt")
      << "\xEF\xBB\xBF" << base::read_file(trained_->path() / "lines.txt");  // as some editors write it
  for (const std::string layout : {"", " --set parallel.tensor=2", " --set parallel.pipe=2 parallel.tensor=2"})
    for (const std::string& how :
         {given, std::string(" --prompts-file lines.txt"), std::string(" --prompts-file marked.txt")}) {
      const Ended ended = trained_->say(greedy + how + layout);
      EXPECT_EQ(ended.code, 0) << ended.err;
      EXPECT_EQ(ended.out, want) << how << layout;
      EXPECT_EQ(TrainedFolder::complaint(ended.err), "") << layout;
    }
  // Each ends as it does alone.
  const std::string stops = " --seed 3 --top-k 9 --stop e --length 60";
  const std::string two = trained_->say("generate run --prompt Line --prompt A" + stops).out;
  const std::string one = trained_->say("generate run --prompt Line" + stops).out;
  EXPECT_TRUE(two.starts_with("==> 1: Line <==\n" + one + "\n==> 2: A <==\nA")) << two;
  // Two ranks share two texts.
  const Ended ranks = trained_->say("generate run --prompt Line --prompt A --ranks 2" + stops);
  EXPECT_EQ(ranks.out, two);
  EXPECT_EQ(TrainedFolder::complaint(ranks.err), "");
}

// The run was trained in fp32: other dtypes give similar but different results.
TEST_F(GenerateRanks, ComputeInTheDtypeThatIsAskedFor) {
  for (const std::string layout : {"", " --set parallel.tensor=2"}) {
    EXPECT_EQ(trained_->say(kGreedy + " --dtype fp32" + layout).out, trained_->text);
    for (const auto& [dtype, tolerance] :
         std::vector<std::pair<std::string, double>>{{"fp64", 1e-6}, {"fp16", 1e-3}, {"bf16", 1e-2}}) {
      const auto [what, loss] = TrainedFolder::loss_of(trained_->say("evaluate run --dtype " + dtype + layout));
      EXPECT_EQ(what, trained_->loss.first) << dtype;
      EXPECT_NEAR(loss, trained_->loss.second, tolerance * trained_->loss.second) << dtype;
      EXPECT_EQ(loss != trained_->loss.second, dtype != "fp64") << dtype;
      const Ended told = trained_->say(kGreedy + " --dtype " + dtype + layout);
      EXPECT_EQ(told.code, 0) << told.err;
      EXPECT_EQ(told.out.substr(0, 6), "Line 1") << dtype;
      EXPECT_GT(told.out.size(), 30u) << dtype;
    }
  }
}

// The embedding may have more rows than the tokenizer has ids: these are never sampled.
TEST_F(GenerateRanks, DrawIdsOfTheTokenizerAlone) {
  EXPECT_EQ(trained_->say("train run.toml --set train.folder=wide model.vocab=5000 train.steps=1").code, 0);
  const Ended ended = trained_->say("generate wide --length 50");
  EXPECT_EQ(ended.code, 0) << ended.err;
}

// A bf16 run also keeps fp32 weights, which are loaded, so fp32 and fp64 agree.
TEST_F(GenerateRanks, ReadTheMasterWeightsOfANarrowRun) {
  EXPECT_EQ(trained_->say("train run.toml --set train.folder=narrow train.dtype=bf16").code, 0);
  const auto loss = [](const std::string& options) {
    return TrainedFolder::loss_of(trained_->say("evaluate narrow" + options)).second;
  };
  const double wide = loss(" --dtype fp32");
  EXPECT_NEAR(loss(" --dtype fp64"), wide, 1e-6 * wide);
  EXPECT_EQ(loss(" --dtype bf16"), loss(""));
  EXPECT_NE(loss(""), wide);
}

TEST_F(GenerateRanks, SayWhatIsWrongOnce) {
  std::ofstream(trained_->path() / "ids.txt") << "1 2 3\n";
  for (const std::string verb : {"generate run", "evaluate run", "evaluate run --ids ids.txt"})
    expect_error(verb + " --dtype int8",
                 "[" + verb.substr(0, 8) + "] --dtype int8 is not one of fp32, bf16, fp16, fp64");
  std::ofstream(trained_->path() / "gap.txt") << "Line 1\n\nLine 2\n";
  std::ofstream(trained_->path() / "none.txt") << "";
  expect_error("generate run --prompts-file gap.txt",
               "[generate] \"gap.txt\":2: empty prompt; write one prompt per line");
  expect_error("generate run --prompts-file none.txt --ranks 2",
               "[generate] \"none.txt\" is empty; write one prompt per line");
  expect_error("evaluate run --dump d", "[evaluate] --dump needs --ids FILE or --task TASK");
  expect_error("generate run --set parallel.context=2",
               "[generate] parallel.context = 2 splits the tokens of a text, of which generation makes one at a time; "
               "leave it out, and split weights and caches by parallel.tensor or parallel.pipe");
  expect_error(
      "generate run --ranks 2 --set train.seed=3",
      "[generate] --set train.seed=3: only keys of [parallel] are set here; [train] is that of the checkpoint");
  expect_error("evaluate run --set model.layers=3",
               "[evaluate] --set model.layers=3: only keys of [parallel] are set here; [model] is that of the "
               "checkpoint");
  expect_error("generate nothing --ranks 4",
               "[checkpoint] there is no folder \"nothing\"; a checkpoint or a run's folder is needed");
  expect_error("evaluate run --set parallel.pipe=8",
               "[stages] mesh axis \"pipe\" of size 8 asks for 8 parts of 4 layers; at most pipe = 4");
  expect_error("generate --ranks 2", "[kintsugi generate] model is required; see kintsugi generate --help");
}

TEST_P(GenerateUnderMpi, SayWhatOneRankSays) {
  const Ended ended = trained_->launch(GetParam(), 2, kGreedy + " --set parallel.pipe=2");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, trained_->text);
  EXPECT_EQ(TrainedFolder::complaint(ended.err), "");
  expect_loss(trained_->launch(GetParam(), 2, "evaluate run --set parallel.tensor=2"), "tensor=2");
}

TEST_P(GenerateUnderMpi, EndTogether) {
  const auto expect_failure = [](const Ended& ended, const std::string& line) {
    EXPECT_NE(ended.code, 0);
    EXPECT_EQ(TrainedFolder::complaint(ended.err), "error: " + line + "\n");
  };
  expect_failure(
      trained_->launch(GetParam(), 2, "generate run"),
      "[generate] the plan is for one rank, 2 were started; start one, or --ranks 2 gives each a part of the "
      "work ([parallel] has other ways)");
  expect_failure(trained_->launch(GetParam(), 1,
                                  "generate run --ranks 2 --seed 1 : -n 1 " + kintsugi_command() +
                                      " generate run --ranks 2 --seed 2"),
                 "[generate] rank 1 has another command line than rank 0: \"--seed 2\" instead of \"--seed 1\"; start "
                 "all ranks with one");
  for (const std::string verb : {"generate", "evaluate"})
    expect_failure(trained_->launch(GetParam(), 1,
                                    verb + " run --ranks 2 --dtype fp32 : -n 1 " + kintsugi_command() + " " + verb +
                                        " run --ranks 2 --dtype bf16"),
                   "[" + verb +
                       "] rank 1 has another command than rank 0: \"--dtype bf16\" instead of \"--dtype fp32\"; start "
                       "all ranks with one");
}

INSTANTIATE_TEST_SUITE_P(Mpi, GenerateUnderMpi, testing::ValuesIn(kMpis), name_of_mpi);

}  // namespace kintsugi::tests::generate_ranks_test
