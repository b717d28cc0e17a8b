// Losses in bits per byte in the metrics of a run: with a token per byte, those in nats divided by ln 2.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numbers>

#include "kintsugi/base/json.h"
#include "tests/process.h"

namespace kintsugi::tests::bits_per_byte_test {

TEST(BitsPerByte, AreThoseOfTheTextsOfTokens) {
  const TemporaryFolder folder;
  std::ofstream text(folder / "text.txt");
  for (int i = 0; i < 300; ++i) text << "Line " << i * i % 97 << " é of a text.\n";
  text.close();
  std::ofstream(folder / "run.toml")
      << "[model]\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"corpus/train\"\nvalidation = "
         "\"corpus/validation\"\n[train]\nfolder = \"run\"\nsteps = 2\nglobal_batch = 4\nsequence = 16\nevent_files = "
         "false\n[parallel]\nthreads = 1\n";
  const auto last = [&](const std::string& tokenizer) {
    std::filesystem::remove_all(folder / "corpus");
    std::filesystem::remove_all(folder / "run");
    const Ended made =
        run_kintsugi(folder.path(), "prepare text.txt --validation 0.2 --output corpus --tokenizer " + tokenizer);
    EXPECT_EQ(made.code, 0) << made.err;
    const Ended done = run_kintsugi(folder.path(), "train run.toml --ranks 2");
    EXPECT_EQ(done.code, 0) << done.err;
    std::ifstream file(folder / "run/metrics.jsonl");
    std::string line, newest;
    while (std::getline(file, line)) newest = line;
    return base::Json::parse("test", "metrics", newest);
  };
  const base::Json bytes = last("bytes");
  for (const std::string before : {"", "validation_"})
    EXPECT_NEAR(bytes.at(before + "bits_per_byte").number(), bytes.at(before + "loss").number() / std::numbers::ln2,
                2e-2);
  // Of larger tokens there are fewer.
  const base::Json words = last("bpe:300");
  EXPECT_LT(words.at("bits_per_byte").number(), 0.9 * words.at("loss").number() / std::numbers::ln2);
}

}  // namespace kintsugi::tests::bits_per_byte_test
