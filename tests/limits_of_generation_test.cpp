// Memory of generation and how it fails: caches as long as a text, and NaN.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>

#include "kintsugi/base/file.h"
#include "tests/process.h"

namespace kintsugi::tests::limits_of_generation_test {
namespace {

class LimitsOfGeneration : public testing::Test {
 protected:
  LimitsOfGeneration() {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 200; ++i) text << "some words of a text, " << i << ".\n";
    text.close();
    EXPECT_EQ(run("prepare text.txt --output corpus").code, 0);
  }

  Ended run(const std::string& words) { return run_kintsugi(folder.path(), words); }
  void train(const std::string& model, const std::string& more = "", int steps = 2) {
    std::ofstream(folder / "run.toml") << "[model]\nfamily = \"llama\"\nlayers = 1\nembed = 16\nheads = 2\n"
                                       << model
                                       << "[data]\ntrain = \"corpus/train\"\n[train]\nfolder = \"run\"\nsteps = "
                                       << steps
                                       << "\n"
                                          "global_batch = 2\nsequence = 8\n"
                                       << more << "[parallel]\nthreads = 1\n";
    const Ended ended = run("train run.toml");
    ASSERT_EQ(ended.code, 0) << ended.err;
  }

  TemporaryFolder folder;
};

}  // namespace

// The model's positions would need 11 GiB.
TEST_F(LimitsOfGeneration, CachesAreAsLongAsTheTexts) {
  train("context = 90000000\n");
  const Ended made = run("generate run --prompt some --length 5 --temperature 0");
  EXPECT_EQ(made.code, 0) << made.err;
  const Ended limited = run("generate run --prompt some --length 5 --temperature 0 --context 64");
  EXPECT_EQ(limited.out, made.out);
  // Text continues beyond the caches.
  const Ended longer = run("generate run --prompt some --length 40 --temperature 0 --context 16");
  EXPECT_EQ(longer.code, 0) << longer.err;
  const Ended wrong = run("generate run --prompt some --context 90000001");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.err.find("error: [generate] --context 90000001 exceeds the model's 90000000 positions\n"),
            std::string::npos)
      << wrong.err;
}

// A text that fits into the original context is made with the short factors, however long the caches could be.
TEST_F(LimitsOfGeneration, CachesDoNotSelectTheFactorsOfLongerTexts) {
  train(
      "context = 64\nrope_scaling = \"longrope\"\nrope_original_context = 16\nrope_factor = 4.0\n"
      "rope_short_factors = [1.0, 1.0, 1.0, 1.0]\nrope_long_factors = [30.0, 30.0, 30.0, 30.0]\n",
      "learning_rate = 0.05\nwarmup_steps = 0\n", 30);
  for (const std::string seed : {"1", "2"}) {
    const std::string how = "generate run --prompt some --length 12 --temperature 1.5 --seed " + seed;
    const Ended made = run(how);
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(run(how + " --context 16").out, made.out);
  }
}

// Weights outside the range of fp16.
TEST_F(LimitsOfGeneration, NumbersThatAreNoneEndIt) {
  train("", "learning_rate = 1e5\nwarmup_steps = 0\nclip = 0\n", 1);
  EXPECT_EQ(run("generate run --prompt some --length 5").code, 0);
  const Ended made = run("generate run --prompt some --length 5 --dtype fp16");
  EXPECT_EQ(made.code, 1) << made.out;
  const char* const which = " elements of embedding.table are NaN or infinity in fp16, whose largest number is 65504; ";
  EXPECT_NE(made.err.find(which), std::string::npos) << made.err;
  const Ended evaluated = run("evaluate run --data corpus/train --dtype fp16");
  EXPECT_EQ(evaluated.code, 1) << evaluated.out;
  EXPECT_NE(evaluated.err.find(which), std::string::npos) << evaluated.err;
  EXPECT_EQ(run("evaluate run --data corpus/train --dtype fp16 --allow-not-finite").code, 0);
  const Ended exported = run("export run half --dtype fp16");
  EXPECT_EQ(exported.code, 1) << exported.out;
  EXPECT_NE(exported.err.find("--allow-not-finite writes them as they are"), std::string::npos) << exported.err;
}

// Weights that are finite in fp32, and logits too.
TEST_F(LimitsOfGeneration, APerplexityOfInfinityEndsIt) {
  train("tied = false\n", "learning_rate = 1e3\nwarmup_steps = 0\nclip = 0\n", 1);
  std::ofstream(folder / "ids") << "1 2 3 4 5 6 7 8\n";
  const std::string said = ", and its perplexity exceeds 1.8e308: the logits are too large\n";
  for (const std::string data : {"--data corpus/train", "--ids ids"}) {
    const Ended ended = run("evaluate run " + data);
    EXPECT_EQ(ended.code, 1) << ended.out;
    EXPECT_EQ(ended.out, "");
    EXPECT_NE(ended.err.find("error: [evaluate] the loss over \""), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find(said), std::string::npos) << ended.err;
    EXPECT_EQ(run("evaluate run --allow-not-finite " + data).code, 0);
  }
  // NaN of samples that are given.
  const Ended half = run("evaluate run --ids ids --dtype fp16");
  EXPECT_EQ(half.code, 1) << half.out;
  EXPECT_NE(half.err.find("NaN or infinity"), std::string::npos) << half.err;
}

// One that no logit of this text depends on.
TEST_F(LimitsOfGeneration, AWeightThatBecomesInfiniteIsNamed) {
  train("tied = false\n");
  ASSERT_EQ(run("export run folder").code, 0);
  const auto file = folder / "folder" / "model.safetensors";
  std::string bytes = base::read_file(file);
  const size_t header = 8 + static_cast<unsigned char>(bytes[0]) + 256 * static_cast<unsigned char>(bytes[1]);
  const size_t offsets = bytes.find("data_offsets", bytes.find("\"model.embed_tokens.weight\""));
  const size_t end = header + std::stoull(bytes.substr(bytes.find(',', offsets) + 1, 20));
  const float large = 7e4F;
  std::memcpy(bytes.data() + end - sizeof large, &large, sizeof large);
  std::ofstream(file, std::ios::binary) << bytes;
  EXPECT_EQ(run("generate folder --prompt some --length 2 --temperature 0 --dtype bf16").code, 0);
  const Ended made = run("generate folder --prompt some --length 2 --temperature 0 --dtype fp16");
  EXPECT_EQ(made.code, 1) << made.out;
  EXPECT_NE(made.err.find("error: [model] 1 of the "), std::string::npos) << made.err;
  EXPECT_NE(
      made.err.find(" elements of embedding.table are NaN or infinity in fp16, whose largest number is 65504; use "
                    "--dtype bf16 or fp32\n"),
      std::string::npos)
      << made.err;
}

}  // namespace kintsugi::tests::limits_of_generation_test
