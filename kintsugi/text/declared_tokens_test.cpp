#include "kintsugi/text/declared_tokens.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"

namespace kintsugi::text::declared_tokens_test {
namespace {

namespace fs = std::filesystem;

// Words, with special tokens of unusual names.
std::string words(std::string_view post_processor) {
  return R"({"version":"1.0","added_tokens":[{"id":0,"content":"<go>","special":true,"normalized":false},)"
         R"({"id":1,"content":"<stop>","special":true,"normalized":false},)"
         R"({"id":2,"content":"<turn>","special":true,"normalized":false}],"normalizer":null,)"
         R"("pre_tokenizer":{"type":"WhitespaceSplit"},"post_processor":)" +
         std::string(post_processor) +
         R"(,"decoder":null,"model":{"type":"WordLevel","vocab":{"<go>":0,"<stop>":1,"<turn>":2,"a":3},)"
         R"("unk_token":"a"}})";
}

class Declarations : public testing::Test {
 protected:
  Declarations() {
    std::string name = (fs::temp_directory_path() / "kintsugi_XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  ~Declarations() override { fs::remove_all(folder); }
  void put(const char* name, std::string_view text) { base::write_file_atomically(folder / name, text); }

  fs::path folder;
};

}  // namespace

TEST_F(Declarations, AreReadBesideTheTokenizer) {
  put("tokenizer.json", words("null"));
  EXPECT_EQ(load_tokenizer(folder)->end_of_text(), std::nullopt);  // no name that is known
  put("special_tokens_map.json", R"({"eos_token":"<stop>"})");
  EXPECT_EQ(load_tokenizer(folder)->end_of_text(), 1);
  put("tokenizer_config.json", R"({"eos_token":{"content":"<turn>"},"bos_token":"<go>","add_bos_token":true})");
  put("generation_config.json", R"({"eos_token_id":[1,2]})");
  const auto tokenizer = load_tokenizer(folder);
  EXPECT_EQ(tokenizer->end_of_text(), 2);
  EXPECT_EQ(tokenizer->stops(), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(tokenizer->special_tokens().before, std::vector<int32_t>{0});
  // They are part of the text, and other programs see the same tokenizer.
  const auto again = parse_tokenizer(tokenizer->to_json(), "t");
  EXPECT_EQ(again->end_of_text(), 2);
  EXPECT_EQ(again->stops(), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(again->special_tokens().before, std::vector<int32_t>{0});
  EXPECT_EQ(again->to_json(), tokenizer->to_json());
  EXPECT_EQ(without_declared(tokenizer->to_json()), words("null"));
  EXPECT_EQ(again->encode("a <stop>"), (std::vector<int32_t>{3, 1}));
}

// As in transformers: a template overrides add_bos_token.
TEST_F(Declarations, OfATemplateAreItsOwn) {
  put("tokenizer.json", words(R"({"type":"ByteLevel"})"));
  put("tokenizer_config.json", R"({"bos_token":"<go>","add_bos_token":true})");
  EXPECT_TRUE(load_tokenizer(folder)->special_tokens().before.empty());
  put("generation_config.json", R"({"eos_token_id":1})");
  EXPECT_EQ(load_tokenizer(folder)->end_of_text(), 1);
}

TEST_F(Declarations, ATemplateIsWrittenAndRemoved) {
  const std::string with = with_begin(words("null"), 0, "<go>");
  EXPECT_EQ(parse_tokenizer(with, "t")->special_tokens().before, std::vector<int32_t>{0});
  EXPECT_EQ(with_begin(with, std::nullopt, ""), words("null"));
}

TEST_F(Declarations, OfADocumentAreKept) {
  text::DeclaredTokens declared;
  declared.begin = 0;
  const auto tokenizer = with_declared(parse_tokenizer(words("null"), "t"), declared);
  EXPECT_EQ(parse_tokenizer(tokenizer->to_json(), "t")->begin_of_document(), 0);
  EXPECT_EQ(find_token(*tokenizer, "<turn>"), 2);
  EXPECT_EQ(find_token(*tokenizer, "<none>"), std::nullopt);
}

}  // namespace kintsugi::text::declared_tokens_test
