// Tokens that begin and end documents, from a tokenizer folder to a corpus, a run and its export.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "kintsugi/base/file.h"
#include "tests/process.h"

namespace kintsugi::tests::document_tokens_test {
namespace {

// A word tokenizer whose template puts <go> before texts.
constexpr const char* kTokenizer =
    R"({"version":"1.0","added_tokens":[{"id":0,"content":"<go>","special":true,"normalized":false},)"
    R"({"id":1,"content":"<halt>","special":true,"normalized":false},)"
    R"({"id":2,"content":"<turn>","special":true,"normalized":false}],"normalizer":null,)"
    R"("pre_tokenizer":{"type":"WhitespaceSplit"},"post_processor":{"type":"TemplateProcessing",)"
    R"("single":[{"SpecialToken":{"id":"<go>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],)"
    R"("special_tokens":{"<go>":{"id":"<go>","ids":[0],"tokens":["<go>"]}}},"decoder":null,)"
    R"("model":{"type":"WordLevel","vocab":{"<go>":0,"<halt>":1,"<turn>":2,"one":3,"two":4,"three":5,"four":6},)"
    R"("unk_token":"one"}})";

class DocumentTokens : public testing::Test {
 protected:
  DocumentTokens() {
    fs::create_directory(folder / "tokenizer");
    std::ofstream(folder / "tokenizer/tokenizer.json") << kTokenizer;
    std::ofstream(folder / "tokenizer/tokenizer_config.json") << R"({"bos_token":"<go>","eos_token":"<halt>"})";
    std::ofstream(folder / "tokenizer/generation_config.json") << R"({"eos_token_id":[1,2]})";
    std::ofstream texts(folder / "texts.jsonl");
    for (int i = 0; i < 60; ++i)
      texts << (i % 2 == 0 ? R"({"text":"one two three"})" : R"({"text":"four one"})") << '\n';
    texts.close();
    std::ofstream(folder / "run.toml")
        << "[model]\nfamily = \"llama\"\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"corpus/train\"\n"
           "[train]\nfolder = \"run\"\nsteps = 60\nglobal_batch = 8\nsequence = 8\nlearning_rate = 3e-2\n"
           "[parallel]\nthreads = 1\n";
  }

  void prepare(const std::string& options) {
    const Ended ended = run_kintsugi(
        folder.path(),
        "prepare texts.jsonl --field text --tokenizer tokenizer --validation 0 --output corpus " + options);
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  std::vector<int> first_ids(size_t count) {
    const std::string bytes = base::read_file(folder / "corpus/train.bin");
    std::vector<uint16_t> ids(count);
    std::memcpy(ids.data(), bytes.data(), count * sizeof ids[0]);
    return {ids.begin(), ids.end()};
  }
  // The text that the run and its exported folder generate after a prompt, which must be equal.
  std::string written() {
    EXPECT_EQ(run_kintsugi(folder.path(), "train run.toml").code, 0);
    EXPECT_EQ(run_kintsugi(folder.path(), "export run hf").code, 0);
    const std::string how = " --prompt \"one two\" --length 5 --temperature 0";
    const Ended run = run_kintsugi(folder.path(), "generate run" + how);
    const Ended exported = run_kintsugi(folder.path(), "generate hf" + how);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(exported.out, run.out) << exported.err;
    return run.out;
  }

  TemporaryFolder folder;
};

}  // namespace

// No document begins with <go>, so prompts do not either.
TEST_F(DocumentTokens, AreThoseThatTheTokenizerDeclares) {
  prepare("");
  EXPECT_EQ(first_ids(8), (std::vector<int>{3, 4, 5, 1, 6, 3, 1, 3}));
  EXPECT_NE(written().find("one two three"), std::string::npos);
  EXPECT_NE(base::read_file(folder / "hf/tokenizer.json").find("\"post_processor\":null"), std::string::npos);
  // A text without a prompt begins after the end of another, here and there.
  for (const char* file : {"hf/generation_config.json", "hf/config.json"}) {
    const std::string text = base::read_file(folder / file);
    EXPECT_NE(text.find("\"bos_token_id\": 1,"), std::string::npos) << text;
    EXPECT_NE(text.find("\"eos_token_id\": [\n    1,\n    2\n  ]"), std::string::npos) << text;
  }
}

TEST_F(DocumentTokens, AreThoseThatAreNamed) {
  prepare("--document-begin \"<go>\" --document-end \"<turn>\"");
  EXPECT_EQ(first_ids(9), (std::vector<int>{0, 3, 4, 5, 2, 0, 6, 3, 2}));
  EXPECT_NE(written().find("one two three"), std::string::npos);
  EXPECT_EQ(base::read_file(folder / "hf/tokenizer.json").find("\"post_processor\":null"), std::string::npos);
  const Ended unknown = run_kintsugi(folder.path(),
                                     "prepare texts.jsonl --field text --tokenizer tokenizer --output other "
                                     "--document-end \"<none>\"");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.err.find("error: [prepare] --document-end \"<none>\": the tokenizer has no such token\n"),
            std::string::npos)
      << unknown.err;
}

// Training samples may begin with a token that documents do not have; prompts, evaluation and the exported folder then
// do too.
TEST_F(DocumentTokens, BeginSamples) {
  prepare("");
  std::string run = base::read_file(folder / "run.toml");
  run.replace(run.find("[data]\n"), 7, "[data]\nbegin_samples = true\n");
  std::ofstream(folder / "run.toml") << run;
  EXPECT_NE(written().find("one two three"), std::string::npos);
  EXPECT_EQ(base::read_file(folder / "hf/tokenizer.json").find("\"post_processor\":null"), std::string::npos);
  EXPECT_NE(base::read_file(folder / "hf/generation_config.json").find("\"bos_token_id\": 0"), std::string::npos);
  EXPECT_NE(base::read_file(folder / "run/config.toml").find("first_token = 0"), std::string::npos);
  const auto loss = [&](const std::string& model) {
    const std::string out = run_kintsugi(folder.path(), "evaluate " + model + " --data corpus/train --sequence 8").out;
    return out.substr(std::min(out.find("data"), out.size()));
  };
  EXPECT_NE(loss("run").find(" tokens\nloss "), std::string::npos) << loss("run");
  EXPECT_EQ(loss("run"), loss("hf"));
  // The prediction of the first word differs with and without the token.
  run.erase(run.find("begin_samples = true\n"), 21);
  run.replace(run.find("\"run\""), 5, "\"other\"");
  std::ofstream(folder / "other.toml") << run;
  EXPECT_EQ(run_kintsugi(folder.path(), "train other.toml").code, 0);
  EXPECT_NE(loss("run"), loss("other"));
}

// One-token documents with reset_at_document have nothing to predict.
TEST_F(DocumentTokens, NothingHasALabel) {
  fs::create_directory(folder / "bare");
  std::ofstream(folder / "bare/tokenizer.json") << kTokenizer;
  std::ofstream texts(folder / "words.jsonl");
  for (int i = 0; i < 60; ++i) texts << R"({"text":"one"})" << '\n';
  texts.close();
  ASSERT_EQ(run_kintsugi(folder.path(), "prepare words.jsonl --field text --tokenizer bare --output words").code, 0);
  std::string run = base::read_file(folder / "run.toml");
  run.replace(run.find("corpus/train\""), 13,
              "words/train\"\nvalidation = \"words/validation\"\nreset_at_document = true");
  run.replace(run.find("steps = 60"), 10, "steps = 2");
  run.replace(run.find("sequence = 8"), 12, "sequence = 4");
  std::ofstream(folder / "run.toml") << run;
  const Ended trained = run_kintsugi(folder.path(), "train run.toml");
  EXPECT_EQ(trained.code, 0) << trained.err;
  const std::string all = trained.out + trained.err;
  EXPECT_NE(all.find("step 1: nothing of the batch has a label, so the loss is 0 and no update is made"),
            std::string::npos)
      << all;
  EXPECT_NE(all.find("none of its samples has a label"), std::string::npos) << all;
  EXPECT_EQ(all.find("nan"), std::string::npos) << all;
  const Ended evaluated = run_kintsugi(folder.path(), "evaluate run --data words/train");
  EXPECT_EQ(evaluated.code, 1) << evaluated.out;
  EXPECT_NE(evaluated.err.find("has a label"), std::string::npos) << evaluated.err;
}

}  // namespace kintsugi::tests::document_tokens_test
