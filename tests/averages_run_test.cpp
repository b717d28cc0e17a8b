// Runs with averages of their weights, and the test of learning rates, as commands.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kintsugi/base/file.h"
#include "tests/process.h"

namespace kintsugi::tests::averages_run_test {
namespace {

class AveragesRun : public ::testing::Test {
 protected:
  AveragesRun() {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 400; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
    text.close();
    std::ofstream(folder / "run.toml")
        << "[model]\nfamily = \"llama\"\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"corpus/train\"\n"
           "validation = \"corpus/validation\"\n[train]\nfolder = \"run\"\nsteps = 20\nglobal_batch = 4\nsequence = "
           "16\n"
           "learning_rate = 0.01\nevaluate_batches = 0\nevaluate_every = 0\nema_decay = 0.9\n[parallel]\nthreads = 1\n";
    EXPECT_EQ(run("prepare text.txt --tokenizer bytes --output corpus").code, 0);
  }

  Ended run(const std::string& arguments) const { return Process(folder.path(), arguments).wait(); }

  // The number in the line of that name.
  static std::string line(const std::string& text, const std::string& name) {
    const size_t at = text.find("\n" + name + " ");
    if (at == text.npos) return "";
    const size_t begin = text.find_first_not_of(' ', at + 1 + name.size());
    return text.substr(begin, text.find_first_of(" \n", begin) - begin);
  }

  double validation_loss(const std::string& name) const {
    std::ifstream in(folder / name / "metrics.jsonl");
    double loss = 0;
    for (std::string text; std::getline(in, text);)
      if (const auto json = nlohmann::json::parse(text); json.contains("validation_loss"))
        loss = json["validation_loss"];
    return loss;
  }

  TemporaryFolder folder;
};

}  // namespace

TEST_F(AveragesRun, ValidateEvaluateExportAndResumeThem) {
  ASSERT_EQ(run("train run.toml").code, 0);
  const Ended averaged = run("evaluate run --average"), plain = run("evaluate run");
  const std::string of_average = line(averaged.out, "loss"), of_weights = line(plain.out, "loss");
  EXPECT_NEAR(std::stod(of_average), validation_loss("run"), 1e-4);
  EXPECT_NE(of_average, of_weights);
  ASSERT_EQ(run("export run average --average").code, 0);
  EXPECT_EQ(line(run("evaluate average --data corpus/validation").out, "loss"), of_average);
  ASSERT_EQ(run("export run weights").code, 0);
  EXPECT_EQ(line(run("evaluate weights --data corpus/validation").out, "loss"), of_weights);
  EXPECT_NE(run("generate run --average --prompt a --length 3").out, "");
  // In another layout, and resumed: the averages go on.
  ASSERT_EQ(run("train run.toml --set train.folder=two train.steps=10 train.decay_steps=20").code, 0);
  ASSERT_EQ(run("train run.toml --resume --set train.folder=two train.steps=20 parallel.data=2 parallel.zero=3").code,
            0);
  EXPECT_NEAR(validation_loss("two"), validation_loss("run"), 1e-4);
  // A run from its weights begins its averages at them.
  ASSERT_EQ(
      run("train run.toml --set train.folder=three train.init_from=average train.steps=1 train.learning_rate=1e-12 "
          "train.min_learning_rate=0")
          .code,
      0);
  EXPECT_NEAR(validation_loss("three"), std::stod(of_average), 1e-4);

  ASSERT_EQ(run("train run.toml --set train.folder=none train.ema_decay=0 train.steps=1").code, 0);
  for (const std::string verb :
       {"evaluate none --average", "export none out --average", "evaluate weights --average"}) {
    const Ended refused = run(verb);
    EXPECT_EQ(refused.code, 1);
    EXPECT_NE(refused.err.find("holds no averages of weights; a run with train.ema_decay above 0 saves them"),
              std::string::npos)
        << refused.err;
  }
}

TEST_F(AveragesRun, FindLearningRate) {
  const Ended found = run("train run.toml --find-learning-rate --picture rates.svg");
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_TRUE(found.out.starts_with("learning rate     loss   smooth\n      1.0e-07 ")) << found.out;
  const std::string rate = line(found.out, "set train.learning_rate =");
  ASSERT_NE(rate, "") << found.out;
  EXPECT_GT(std::stod(rate), 1e-4);
  EXPECT_LT(std::stod(rate), 1.0);
  EXPECT_TRUE(base::read_file(folder / "rates.svg").starts_with("<svg"));
  EXPECT_FALSE(fs::exists(folder / "run"));
  // The losses of two ranks are those of one.
  const Ended two = run("train run.toml --find-learning-rate --picture two.svg --set parallel.data=2 parallel.zero=1");
  EXPECT_EQ(two.out.substr(0, 300), found.out.substr(0, 300)) << two.err;
  EXPECT_EQ(run("train run.toml --picture rates.svg").code, 1);
  // The picture of an earlier test is replaced.
  EXPECT_EQ(run("train run.toml --find-learning-rate --picture two.svg").code, 0);
  const Ended refused = run("train run.toml --find-learning-rate --picture corpus/train.bin");
  EXPECT_EQ(refused.code, 1);
}

}  // namespace kintsugi::tests::averages_run_test
