// A run continues only with the data that it started with; changes in between are reported.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/index.h"
#include "tests/patterns.h"
#include "tests/ranks_folder.h"

namespace kintsugi::tests::data_identity_test {
namespace {

class DataIdentity : public testing::Test, protected RanksFolder {
 protected:
  Ended train(const std::string& sets, const std::string& run = "run") {
    return run_kintsugi(folder.path(),
                        arguments(run, "", "train.evaluate_every=0 train.warmup_steps=0 checkpoint.every=2 " + sets));
  }
  void prepare(const std::string& arguments) {
    const Ended ended = run_kintsugi(folder.path(), "prepare " + arguments + " --output corpus --force");
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  void expect_refused(const Ended& ended, const std::string& line) {
    EXPECT_EQ(ended.code, 1);
    EXPECT_EQ(hidden(complaint(ended.err)), line);
  }
  static std::string hidden(const std::string& text) { return replaced(text, "[0-9a-f]{16}", "#"); }
  static std::string changed(const std::string& what) {
    return "error: [resume] the data have changed: " + what +
           "; restore them, or start a new run in another train.folder, from these weights with train.init_from=run\n";
  }
  static std::string file(const std::string& name) {
    return "\"corpus/" + name + "\" has the fingerprint #, the run began with #";
  }

  // As written by an earlier version.
  void forget_data(const fs::path& checkpoint) {
    const fs::path path = folder / checkpoint / checkpoint::kIndexFile;
    const std::string text = replaced(base::read_file(path), ",\\s*\"data\":\\s*\\[[^\\]]*\\]", "");
    ASSERT_EQ(text.find("fingerprint"), std::string::npos) << text.substr(0, 600);
    base::write_file_atomically(path, text);
    base::write_file_atomically(folder / checkpoint / checkpoint::kIndexChecksumFile,
                                checkpoint::checksum_text(checkpoint::checksum_of(text)) + "\n");
  }
};

TEST_F(DataIdentity, AResumedRunHasItsTokenizerAndItsText) {
  ASSERT_EQ(train("train.steps=2").code, 0);
  const std::string resume = "train.steps=4 --resume";
  fs::copy(folder / "corpus", folder / "kept", fs::copy_options::recursive);
  const std::string files = file("train") + "; " + file("validation");

  prepare("text.txt --tokenizer chars");
  expect_refused(train(resume), changed("the tokenizer " + file("tokenizer.json") + "; " + files));
  prepare("text.txt --tokenizer bpe:300");  // more ids than the model has
  expect_refused(train(resume), changed("the tokenizer " + file("tokenizer.json") + "; " + files));
  prepare("run.toml text.txt --tokenizer bytes");
  expect_refused(train(resume), changed(files));
  EXPECT_EQ(steps("run"), 2);
  EXPECT_FALSE(fs::exists(folder / "run/step_00000004"));

  // With the new data on purpose.
  EXPECT_EQ(train("train.steps=1 train.init_from=run", "next").code, 0);

  // Compares contents, not time or place.
  fs::remove_all(folder / "corpus");
  fs::copy(folder / "kept", folder / "corpus", fs::copy_options::recursive);
  fs::remove(folder / "corpus/train.json");
  const Ended ended = train(resume);
  EXPECT_EQ(ended.code, 0) << ended.err;
  fs::remove(folder / "corpus/tokenizer.json");
  const Ended without = train("train.steps=6 --resume");
  EXPECT_EQ(without.code, 1);
  EXPECT_EQ(hidden(complaint(without.err)),
            changed("the tokenizer \"corpus/tokenizer.json\" of fingerprint # is gone"));
}

TEST_F(DataIdentity, ACorpusMayMove) {
  ASSERT_EQ(train("train.steps=2").code, 0);
  fs::rename(folder / "corpus", folder / "moved");
  prepare("run.toml text.txt --tokenizer bytes");  // another one where it was
  const std::string there = "data.train=moved/train data.validation=moved/validation ";
  const Ended ended = train(there + "train.steps=4 --resume");
  EXPECT_EQ(ended.code, 0) << ended.err;
  expect_refused(
      train("train.steps=6 --resume"),
      changed("\"corpus/train\" has the fingerprint #, the run began "
              "with # of \"moved/train\"; \"corpus/validation\" has the fingerprint #, the run began with # of "
              "\"moved/validation\""));
}

TEST_F(DataIdentity, OfAnOldCheckpointTheTokenizerIsKnown) {
  ASSERT_EQ(train("train.steps=2").code, 0);
  forget_data("run/step_00000002");
  prepare("text.txt --tokenizer chars");
  expect_refused(train("train.steps=4 --resume"),
                 changed("the tokenizer " + file("tokenizer.json") + " of \"run/step_00000002/tokenizer.json\""));
  prepare("text.txt --tokenizer bytes");
  const Ended ended = train("train.steps=4 --resume");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(base::read_file(folder / "run/step_00000004/index.json").find("fingerprint"), std::string::npos);
}

TEST_F(DataIdentity, WeightsOfAnotherTokenizerAreAWarning) {
  ASSERT_EQ(train("train.steps=1 model.vocab=300").code, 0);
  const std::string weights = "train.steps=1 train.init_from=run model.vocab=300";
  EXPECT_EQ(complaint(train(weights, "same").err), "");
  prepare("text.txt --tokenizer chars");
  const Ended ended = train(weights, "other");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(hidden(complaint(ended.err)),
            "warning: the weights of \"run/step_00000001\" were trained with another tokenizer than that of the data: "
            "\"run/step_00000001/tokenizer.json\" of fingerprint #, \"corpus/tokenizer.json\" of #\n");
}

TEST_F(DataIdentity, ATokenFileThatShrinksUnderWay) {
  // On a device, a save may be in progress at that time.
  for (const auto& [name, device] :
       {std::pair("train", ""), std::pair("validation", ""), std::pair("train", "device=emulated"),
        std::pair("validation", "device=emulated")}) {
    SCOPED_TRACE(fmt::format("{} {}", name, device));
    const bool validation = std::string(name) == "validation";
    const std::string run = fmt::format("run_{}_{}", name, *device ? "device" : "cpu");
    fs::remove_all(folder / name);
    fs::copy(folder / "corpus", folder / name, fs::copy_options::recursive);
    const std::string key = validation ? "data.validation=" : "data.train=", data = std::string(name) + "/" + name;
    Process process(folder.path(), arguments(run, device,
                                             "train.steps=1000000 checkpoint.every=2 train.evaluate_every=" +
                                                 std::string(validation ? "3 " : "0 ") + key + data));
    ASSERT_TRUE(process.wait_for([&] { return fs::exists(folder / run / "step_00000002"); }));
    fs::resize_file(folder / (data + ".bin"), 30);
    const Ended ended = process.wait();
    EXPECT_EQ(ended.code, 1) << "signal " << ended.signal;
    const std::string said = complaint(ended.err);
    const std::vector<std::string> found =
        groups(said, "error: \\[train\\] (step|the validation after step) [0-9]+: \"" + data +
                         "\\.bin\" was truncated while in use: it had [0-9]+ bytes, now it ends at byte [0-9]+ or "
                         "before; the newest checkpoint, (" +
                         run + "/step_[0-9]+), is complete; --resume continues from it\n");
    ASSERT_EQ(found.size(), 3u) << said;
    EXPECT_EQ(run_kintsugi(folder.path(), "show " + found[2] + " --verify").code, 0);
  }
}

}  // namespace
}  // namespace kintsugi::tests::data_identity_test
