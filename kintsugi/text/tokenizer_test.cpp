#include "kintsugi/text/tokenizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <sstream>
#include <thread>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/text/base64.h"
#include "kintsugi/text/small_bpe_test.h"
#include "tests/paths.h"

namespace kintsugi::text::tokenizer_test {
namespace {

const std::filesystem::path kData = tests::shared_folder() + "/data";

struct Vector {
  std::string text;
  std::vector<int32_t> ids;
};

std::vector<Vector> read_vectors(const std::string& name) {
  const std::string texts = base::read_file(kData / "tokenizer_vectors" / ("llamacpp-" + name + ".inp"));
  std::istringstream lines(base::read_file(kData / "tokenizer_vectors" / ("llamacpp-" + name + ".out")));
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<Vector> vectors;
  for (size_t from = 0; from <= texts.size();) {  // the last text is empty, and so is its line, without a line's end
    const size_t end = std::min(texts.find(separator, from), texts.size());
    vectors.push_back({texts.substr(from, end - from), {}});
    std::string line;
    std::getline(lines, line);
    std::istringstream ids(line);
    for (int32_t id = 0; ids >> id;) vectors.back().ids.push_back(id);
    from = end + separator.size();
  }
  return vectors;
}

void check_vectors(const Tokenizer& tokenizer, const std::string& name) {
  const auto vectors = read_vectors(name);
  ASSERT_EQ(vectors.size(), 47u);
  for (const auto& [text, ids] : vectors) {
    EXPECT_EQ(tokenizer.encode(text), ids) << text;
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
}

TEST(Tokenizer, GivesTheIdsOfGpt2) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  const auto tokenizer = load_tokenizer(kData / "gpt2_bpe");
  EXPECT_EQ(tokenizer->vocab_size(), 50257);
  EXPECT_EQ(tokenizer->end_of_text(), 50256);
  EXPECT_EQ(tokenizer->kind(), "bpe");
  check_vectors(*tokenizer, "gpt-2");
  const auto again = parse_tokenizer(tokenizer->to_json(), "again");
  EXPECT_EQ(again->vocab_size(), 50257);
  EXPECT_EQ(again->to_json(), tokenizer->to_json());
  check_vectors(*again, "gpt-2");
}

TEST(Tokenizer, GivesTheIdsOfGptNeoX) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  const auto tokenizer = load_tokenizer(kData / "neox_tokenizer");
  EXPECT_EQ(tokenizer->vocab_size(), 50280);
  EXPECT_EQ(tokenizer->end_of_text(), 0);
  check_vectors(*tokenizer, "mpt");
}

TEST(Tokenizer, GivesTheIdsOfLlama2) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  const auto tokenizer = load_tokenizer(kData / "llama_tokenizer");
  EXPECT_EQ(tokenizer->vocab_size(), 32000);
  EXPECT_EQ(tokenizer->end_of_text(), 2);
  EXPECT_EQ(tokenizer->kind(), "sentencepiece");
  check_vectors(*tokenizer, "llama-spm");
  const auto again = parse_tokenizer(tokenizer->to_json(), "again");
  EXPECT_EQ(again->to_json(), tokenizer->to_json());
  check_vectors(*again, "llama-spm");
}

std::string make_noise(std::mt19937& random) {
  static const std::string kParts[] = {"<|endoftext|>",
                                       "  ",
                                       "\n",
                                       "\xED\xA0\xBD\xED\xB8\x80",
                                       "\xC0\x80",
                                       "\xF4\x90",
                                       "\u0301",
                                       "é",
                                       "😀",
                                       "the",
                                       "'ll",
                                       std::string(1, 0)};
  std::string text;
  for (size_t n = random() % 16; n > 0; --n) {
    if (random() % 2) {
      text += kParts[random() % std::size(kParts)];
    } else {
      text.push_back(static_cast<char>(random()));
    }
  }
  return text;
}

TEST(Tokenizer, GivesBackEveryByteOfNoise) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  const auto tokenizer = load_tokenizer(kData / "gpt2_bpe");
  std::mt19937 random(1);
  std::vector<int32_t> ids;
  for (int i = 0; i < 200000; ++i) {
    const std::string text = make_noise(random);
    ids.clear();
    tokenizer->encode(text, ids);
    ASSERT_EQ(tokenizer->decode(ids), text) << testing::PrintToString(text);
  }
  std::string all;
  for (int byte = 0; byte < 256 * 256; ++byte) all += {static_cast<char>(byte >> 8), static_cast<char>(byte)};
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(all)), all);
}

TEST(Tokenizer, IsSafeFromSeveralThreads) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no " << kData;
  const auto tokenizer = load_tokenizer(kData / "neox_tokenizer");
  const std::string text = base::read_file(kData / "tinyshakespeare" / "input.txt").substr(0, 200000) + "é e\u0301";
  const auto expected = tokenizer->encode(text);
  std::vector<std::vector<int32_t>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { tokenizer->encode(text, result); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

class TokenizerFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("kintsugi_tokenizer_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, std::string_view content) const {
    base::write_file_atomically(folder_ / name, content);
  }
  // GPT-2's two files, of the small BPE.
  void write_pair(const std::string& vocabulary, const std::string& merges) const {
    const nlohmann::json model = small_bpe()["model"];
    nlohmann::json ids = model["vocab"];
    ids["<|endoftext|>"] = 260;
    write(vocabulary, ids.dump());
    write(merges, "#version: 0.2\nl o\nlo w\r\nĠ low\ne r\n");
  }
  std::string error() const {
    try {
      load_tokenizer(folder_);
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string at(const std::string& name) const { return "[tokenizer] " + (folder_ / name).string(); }

  std::filesystem::path folder_;
};

TEST_F(TokenizerFolder, HoldsTheFilesUnderEitherName) {
  for (const auto& [vocabulary, merges] : {std::pair("encoder.json", "vocab.bpe"), {"vocab.json", "merges.txt"}}) {
    write_pair(vocabulary, merges);
    const auto tokenizer = load_tokenizer(folder_);
    EXPECT_EQ(tokenizer->encode("lower low<|endoftext|>"), (std::vector<int32_t>{257, 259, 258, 260}));
    EXPECT_EQ(tokenizer->vocab_size(), 261);
    EXPECT_EQ(tokenizer->end_of_text(), 260);
    write("added_tokens.json", R"({"<mask>": 261})");
    EXPECT_EQ(load_tokenizer(folder_)->encode("low<mask>"), (std::vector<int32_t>{257, 261}));
    write("tokenizer.json", load_tokenizer(folder_)->to_json());
    EXPECT_EQ(load_tokenizer(folder_)->encode("low<mask>"), (std::vector<int32_t>{257, 261}));
    EXPECT_EQ(load_tokenizer(folder_ / "tokenizer.json")->vocab_size(), 262);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
}

// Files of tokens by rank, from which the merges follow.
TEST_F(TokenizerFolder, ReadsTiktokenAndTekken) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* token : {"lo", "low", " low", "er", "we", "lowe", "\n\n", "12"}) tokens.emplace_back(token);
  std::string ranks;
  nlohmann::json list = nlohmann::json::array();
  for (size_t rank = 0; rank < tokens.size(); ++rank) {
    ranks += write_base64(tokens[rank]) + " " + std::to_string(rank) + "\n";
    list.push_back({{"rank", rank}, {"token_bytes", write_base64(tokens[rank])}, {"token_str", nullptr}});
  }
  const std::vector<int32_t> expected = {257, 258, 259, 32, 111, 260, 262, 263, 51, 52};
  const std::string text = "low lower owe\n\n1234";
  write("some.tiktoken", ranks);
  EXPECT_EQ(load_tokenizer(folder_)->encode(text), expected);
  EXPECT_EQ(load_tokenizer(folder_)->decode(expected), text);
  EXPECT_EQ(load_tokenizer(folder_)->end_of_text(), std::nullopt);
  write("tokenizer.model", ranks);  // as Llama 3's is called
  EXPECT_EQ(load_tokenizer(folder_ / "tokenizer.model")->encode(text), expected);
  write("tokenizer.model", ranks + "bG8= 256\n");
  EXPECT_EQ(error(), at("tokenizer.model:265: the rank 256 is there twice"));
  write("tokenizer.model", ranks + "???\n");
  EXPECT_EQ(error(), at("tokenizer.model:265: \"???\" should be a token in base64 and its rank"));
  std::filesystem::remove(folder_ / "tokenizer.model");

  list.push_back({{"rank", tokens.size()}, {"token_bytes", write_base64("beyond")}});
  const nlohmann::json tekken = {{"config",
                                  {{"pattern", "\\p{L}+|\\p{N}{1,3}|\\s+(?=\\p{L})|."},
                                   {"default_vocab_size", tokens.size() + 4},
                                   {"default_num_special_tokens", 4}}},
                                 {"vocab", list}};
  write("tekken.json", tekken.dump());
  auto tokenizer = load_tokenizer(folder_ / "tekken.json");
  EXPECT_EQ(tokenizer->encode("lower</s>[INST]12"), (std::vector<int32_t>{261, 263, 2, 3, 267}));
  EXPECT_EQ(tokenizer->special_tokens().before, (std::vector<int32_t>{1}));
  EXPECT_EQ(tokenizer->end_of_text(), 2);
  EXPECT_EQ(tokenizer->vocab_size(), 268);
  tokenizer = parse_tokenizer(tokenizer->to_json(), "again");
  EXPECT_EQ(tokenizer->encode("lower</s>"), (std::vector<int32_t>{261, 263, 2}));
  EXPECT_EQ(tokenizer->special_tokens().before, (std::vector<int32_t>{1}));
}

TEST_F(TokenizerFolder, ReadsVocabularyTexts) {
  write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\nwor\n##ld\r\n!\nHello\ne");
  const auto tokenizer = load_tokenizer(folder_);
  EXPECT_EQ(tokenizer->encode("Hello  World! x[SEP]"), (std::vector<int32_t>{4, 5, 6, 7, 1, 3}));
  EXPECT_EQ(tokenizer->special_tokens().before, (std::vector<int32_t>{2}));
  EXPECT_EQ(tokenizer->special_tokens().after, (std::vector<int32_t>{3}));
  EXPECT_EQ(tokenizer->encode("é"), (std::vector<int32_t>{9}));
  write("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_EQ(load_tokenizer(folder_ / "vocab.txt")->encode("Hello é"), (std::vector<int32_t>{8, 1}));
  write("vocab.txt", "a\nb\n");
  EXPECT_EQ(error(), at("vocab.txt: there is no token [UNK]; a vocab.txt of BERT has a token on each line"));
}

TEST_F(TokenizerFolder, SaysWhatIsMissingOrDamaged) {
  EXPECT_EQ(error(), at("").substr(0, at("").size() - 1) +
                         ": the folder has no tokenizer.json, nor encoder.json and vocab.bpe, nor vocab.json and "
                         "merges.txt, nor tokenizer.model, tekken.json, vocab.txt or one .tiktoken");
  write_pair("vocab.json", "merges.txt");
  write("merges.txt", "#version: 0.2\nl o\nlo w\nĠ");
  EXPECT_EQ(error(), at("merges.txt: merge 3 is \"Ġ\", and should be two tokens with a space between"));
  write("merges.txt", "#version: 0.2\n");
  EXPECT_EQ(error(), at("merges.txt: there are no merges in it"));
  write("merges.txt", "#version: 0.2\nl o\nlo x\n");
  EXPECT_EQ(error(), at("vocab.json: merge 2, \"lo x\", needs the token \"lox\", which the vocabulary lacks; both must "
                        "come from the same tokenizer"));
  write("vocab.json", "{\"a\": 0, \"b");
  EXPECT_EQ(error(), "[tokenizer] \"" + (folder_ / "vocab.json").string() +
                         "\":1: the JSON ends too early, after 11 bytes; it seems to be cut off");
  std::filesystem::remove(folder_ / "merges.txt");
  EXPECT_EQ(error(), at("").substr(0, at("").size() - 1) +
                         ": there is vocab.json, but merges.txt, which belongs to it, is missing");
  try {
    load_tokenizer(folder_ / "nothing.json");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_EQ(error.what(), at("nothing.json: no such file or directory"));
  }
}

}  // namespace
}  // namespace kintsugi::text::tokenizer_test
