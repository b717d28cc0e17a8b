#include "kintsugi/text/tokenizer.h"

#include <gtest/gtest.h>

#include <sstream>

#include "kintsugi/base/file.h"

namespace kintsugi::text {
namespace {

const std::filesystem::path kData = KINTSUGI_SHARED "/data";

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

}  // namespace
}  // namespace kintsugi::text
