// A run whose frozen matrices are int8 codes, as commands: from weights in fp32, resumed in another layout, merged, and
// as the beginning of a run without codes.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/process.h"

namespace kintsugi::tests::frozen_codes_test {
namespace {

class FrozenCodes : public ::testing::Test {
 protected:
  FrozenCodes() {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 300; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
    text.close();
    write("base.toml", "steps = 20\nlearning_rate = 0.01\n");
    write("tune.toml",
          "steps = 4\ndecay_steps = 8\ninit_from = \"base\"\nlearning_rate = 0.001\n[lora]\nrank = 2\n"
          "frozen_dtype = \"int8\"\n");
    good("prepare text.txt --tokenizer bytes --output corpus");
    good("train base.toml --set train.folder=base");
  }

  void write(const std::string& name, const std::string& more) const {
    std::ofstream(folder / name)
        << "[model]\nfamily = \"llama\"\nlayers = 2\nembed = 32\nheads = 4\n[data]\ntrain = \"corpus/train\"\n"
           "[parallel]\nthreads = 1\n[train]\nglobal_batch = 4\nsequence = 32\nevaluate_every = 0\n"
        << more;
  }
  std::string good(const std::string& arguments) const {
    const Ended ended = run_kintsugi(folder.path(), arguments);
    EXPECT_EQ(ended.code, 0) << arguments << "\n" << ended.err;
    return ended.out;
  }
  double loss_of(const std::string& model) const {
    const std::string out = good("evaluate " + model + " --data corpus/validation --sequence 32");
    return std::stod(out.substr(out.find("loss ") + 5));
  }
  TemporaryFolder folder;
};

}  // namespace

TEST_F(FrozenCodes, TrainResumeMergeAndBeginOthers) {
  good("train tune.toml --set train.folder=codes");
  EXPECT_NE(good("show codes").find("int8"), std::string::npos);
  const double coded = loss_of("codes");
  // Codes are within half a step of the weights.
  good("train tune.toml --set train.folder=same lora.frozen_dtype=same");
  const double whole = loss_of("same");
  EXPECT_NE(coded, whole);
  EXPECT_NEAR(coded, whole, 0.01);
  good("export codes merged --merge");
  EXPECT_NEAR(loss_of("merged"), coded, 2e-5);
  good("export codes adapter");
  EXPECT_NEAR(loss_of("adapter"), coded, 0.01);

  // On a device, which continues a run of the processor.
  good("train tune.toml --stop-at 2 --set train.folder=device");
  good("train tune.toml --resume --set train.folder=device parallel.device=emulated");
  EXPECT_NEAR(loss_of("device"), coded, 2e-5);

  // Checkpoints hold the codes: a resumed run in another layout continues with them.
  good("train tune.toml --resume --set train.folder=codes train.steps=6");
  good("train tune.toml --set train.folder=split parallel.data=2 parallel.zero=3");
  good("train tune.toml --resume --set train.folder=split train.steps=6 parallel.tensor=2");
  EXPECT_NEAR(loss_of("split"), loss_of("codes"), 2e-5);

  // A run without codes begins with the weights that codes are.
  good(
      "train tune.toml --set train.folder=after train.init_from=codes lora.frozen_dtype=same "
      "train.learning_rate=1e-12");
  EXPECT_NEAR(loss_of("after"), loss_of("codes"), 2e-5);
}

TEST_F(FrozenCodes, RefuseToTrainACodedWeight) {
  const Ended ended = run_kintsugi(folder.path(), "train tune.toml --set train.folder=x train.init_new=layer1.ffn");
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(
      ended.err,
      "error: [model] train.init_new trains \"layer1.ffn.gate.weight\", which lora.frozen_dtype = \"int8\" stores "
      "without an fp32 copy; leave one out\n");
}

}  // namespace kintsugi::tests::frozen_codes_test
