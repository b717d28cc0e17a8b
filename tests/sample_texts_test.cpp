// Texts generated during training: the same in every layout, and where they are stored.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "kintsugi/base/file.h"
#include "tests/process.h"

namespace kintsugi::tests::samples_test {
namespace {

using Lines = std::vector<std::string>;

class Samples : public ::testing::Test {
 protected:
  Samples() {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 400; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
    text.close();
    std::ofstream(folder / "run.toml")
        << "[model]\nlayers = 4\nembed = 32\nheads = 4\n[data]\ntrain = \"corpus/train\"\n[train]\nsteps = 8\n"
           "global_batch = 8\nsequence = 32\nlearning_rate = 1e-2\nsample_every = 5\nsample_length = 20\n"
           "prompts = [\"Line 1\", \"\", \"of a\\nLine\"]\n[parallel]\nthreads = 1\n";
    EXPECT_EQ(run("prepare text.txt --tokenizer bytes --output corpus").code, 0);
  }

  Ended run(const std::string& arguments) const { return run_kintsugi(folder.path(), arguments); }

  // Trains, and returns "STEP|PROMPT|TEXT" for each text.
  Lines texts(const std::string& name, const std::string& sets) const {
    const Ended ended = run("train run.toml --set train.folder=" + name + " " + sets);
    EXPECT_EQ(ended.code, 0) << sets << "\n" << ended.err;
    return written(name);
  }
  Lines written(const std::string& name) const {
    Lines texts;
    std::ifstream in(folder / name / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      const auto m = nlohmann::json::parse(line);
      for (const auto& sample : m.value("samples", nlohmann::json::array()))
        texts.push_back(fmt::format("{}|{}|{}", m["step"].get<int>(), sample["prompt"].get<std::string>(),
                                    sample["text"].get<std::string>()));
    }
    return texts;
  }

  void expect_error(const std::string& arguments, const std::string& line) const {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, 1) << arguments;
    EXPECT_EQ(ended.err, "error: " + line + "\n");
  }

  TemporaryFolder folder;
};

}  // namespace

// Starts from a trained model with steps that hardly change it, so rounding differences of layouts change no text.
TEST_F(Samples, AreTheSameInEveryLayout) {
  ASSERT_EQ(run("train run.toml --set train.folder=learned train.steps=60 train.sample_every=0 train.prompts=[]").code,
            0);
  const std::string again =
      "train.init_from=learned train.learning_rate=1e-9 train.steps=2 train.sample_every=1 train.sample_length=8 ";
  const Lines one = texts("one", again);
  ASSERT_EQ(one.size(), 6u);
  EXPECT_TRUE(one[0].starts_with("1|Line 1|")) << one[0];
  EXPECT_TRUE(one[4].starts_with("2||")) << one[4];
  EXPECT_EQ(one[1].substr(1), one[4].substr(1));
  int number = 0;
  for (const std::string layout :
       {"data=2 parallel.zero=3 parallel.tensor=2", "tensor=2 parallel.sequence_parallel=true",
        "context=2 parallel.context_method=ring", "pipe=2 parallel.recompute=full",
        "pipe=2 parallel.schedule=interleaved parallel.chunks=2 train.micro_batch=2 parallel.offload=all",
        "pipe=2 parallel.schedule=zero_bubble parallel.data=2 parallel.zero=2 train.micro_batch=1",
        "data=2 train.reproducible=4", "device=emulated"})
    EXPECT_EQ(texts(fmt::format("run{}", number++), again + "parallel." + layout), one) << layout;
}

// Equals the output of `generate` on the checkpoint with the same prompts and default options.
TEST_F(Samples, AreWhatGenerateSays) {
  const Lines all = texts("run", "train.steps=30 train.sample_every=30 train.prompts='[\"Line 1\", \"Line 23 of\"]'");
  ASSERT_EQ(all.size(), 2u);
  const Ended said = run("generate run --length 20 --prompt 'Line 1' --prompt 'Line 23 of'");
  EXPECT_EQ(said.code, 0) << said.err;
  std::string sampled;
  for (const std::string prompt : {"Line 1", "Line 23 of"}) {
    const bool first = prompt == "Line 1";
    const std::string begin = "30|" + prompt + "|";
    ASSERT_TRUE(all[first ? 0 : 1].starts_with(begin)) << all[first ? 0 : 1];
    sampled += fmt::format("{}==> {}: {} <==\n{}{}\n", first ? "" : "\n", first ? 1 : 2, prompt, prompt,
                           all[first ? 0 : 1].substr(begin.size()));
  }
  // Invalid UTF-8 is stored as U+FFFD.
  std::string expected;
  for (const char c : said.out) expected += static_cast<unsigned char>(c) < 0x80 ? std::string(1, c) : "\xef\xbf\xbd";
  EXPECT_EQ(expected, sampled);
  // The same prompt twice gives two texts.
  const Lines twice = texts("twice", "train.steps=1 train.prompts='[\"Line\", \"Line\"]'");
  ASSERT_EQ(twice.size(), 2u);
  EXPECT_NE(twice[0], twice[1]);
  // A text beyond the context continues from its end.
  EXPECT_EQ(texts("long", "train.sample_length=50 train.prompts='Line 1 of a text that a model'").size(), 2u);
}

TEST_F(Samples, AreShownAndKept) {
  const Ended ended = run("train run.toml --set train.folder=run train.prompts=Line");
  EXPECT_EQ(ended.code, 0) << ended.err;
  const Lines all = written("run");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NE(ended.err.find("  > Line"), std::string::npos) << ended.err;
  const std::string events = base::read_file(folder / "run/events.out.tfevents.000001");
  EXPECT_NE(events.find("samples/1"), std::string::npos);
  EXPECT_NE(events.find("    Line"), std::string::npos);
  EXPECT_EQ(run("report run").code, 0);
  EXPECT_NE(base::read_file(folder / "run/report.html").find("<h2>Texts written on the way</h2>"), std::string::npos);
  // A resumed run generates the last ones again.
  fs::remove_all(folder / "run/step_00000008");
  EXPECT_EQ(run("train run.toml --set train.folder=run2 train.prompts=Line checkpoint.every=4").code, 0);
  fs::remove_all(folder / "run2/step_00000008");
  EXPECT_EQ(run("train run.toml --resume --set train.folder=run2 train.prompts=Line").code, 0);
  EXPECT_EQ(written("run2"), all);
}

TEST_F(Samples, TheirSettings) {
  EXPECT_EQ(texts("off", "train.sample_every=0"), Lines());
  EXPECT_NE(run("check run.toml --set train.sample_every=0").err.find("train.prompts = "), std::string::npos);
  std::ofstream(folder / "prompts.toml")
      << "[data]\ntrain = \"corpus/train\"\nvalidation = \"corpus/validation\"\n[train]\nprompts = \"Line\"\n";
  EXPECT_NE(run("check prompts.toml").out.find("\nsample_every = 50                             # derived: "),
            std::string::npos);
  EXPECT_NE(run("check prompts.toml --set data.validation= train.steps=10").out.find("\nsample_every = 10  "),
            std::string::npos);
  EXPECT_NE(run("check prompts.toml --set train.prompts=[] train.sample_every=7")
                .out.find("\nprompts = [\"\"]                                # derived: "),
            std::string::npos);
  expect_error("check run.toml --set model.family=bert",
               "[config] run.toml:12: train.sample_every = 5 needs a model that continues texts: objective \"next\", "
               "and this is \"masked_next\"");
  fs::remove(folder / "corpus/tokenizer.json");
  expect_error("train run.toml --set model.vocab=257 train.folder=no",
               "[train] train.sample_every = 5 needs a tokenizer.json next to the token files; add it, or set "
               "sample_every to 0");
  EXPECT_EQ(run("train run.toml --set model.vocab=257 train.folder=none train.sample_every=0 train.prompts=[] "
                "train.event_files=false")
                .code,
            0);
  for (const auto& file : fs::directory_iterator(folder / "none"))
    EXPECT_FALSE(file.path().filename().string().starts_with("events")) << file.path();
}

// They need no additional memory: it is available while nothing else is computed.
TEST_F(Samples, ShareTheMemoryOfAStep) {
  const auto memory = [&](const std::string& sets) {
    const std::string plan = run("plan run.toml --set " + sets).out;
    return plan.substr(plan.find("arena"));
  };
  const std::string with = memory("train.sample_length=20"), without = memory("train.sample_every=0 train.prompts=[]");
  EXPECT_EQ(with, without);
}

}  // namespace kintsugi::tests::samples_test
