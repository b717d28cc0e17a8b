#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/text/bytes_tokenizer.h"
#include "kintsugi/text/chars_tokenizer.h"
#include "tests/paths.h"

namespace kintsugi::text::own_tokenizers_test {
namespace {

using Ids = std::vector<int32_t>;

template <typename Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(BytesTokenizer, IsItsBytes) {
  const auto tokenizer = make_bytes_tokenizer();
  EXPECT_EQ(tokenizer->vocab_size(), 257);
  EXPECT_EQ(tokenizer->end_of_text(), 256);
  EXPECT_EQ(tokenizer->kind(), "bytes");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const Ids ids = tokenizer->encode(all);
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(ids[byte], byte);
  EXPECT_EQ(tokenizer->decode(ids), all);
  EXPECT_EQ(tokenizer->decode(Ids{65, 256}), "A<|endoftext|>");
  Ids more = {7};
  tokenizer->encode("A", more);
  EXPECT_EQ(more, (Ids{7, 65}));
  EXPECT_EQ(message_of([&] { tokenizer->decode(Ids{257}); }),
            "[tokenizer] id 257 is not in the vocabulary of bytes; ids are 0 to 256");
}

TEST(BytesTokenizer, IsReadBack) {
  const auto again = parse_tokenizer(make_bytes_tokenizer()->to_json(), "x.json");
  EXPECT_EQ(again->kind(), "bytes");
  EXPECT_EQ(again->to_json(), make_bytes_tokenizer()->to_json());
}

TEST(CharsTokenizer, GivesIdsInTheOrderOfCodePoints) {
  const auto tokenizer = make_chars_tokenizer({U'b', U'a', U'😀', U'é'}, false);
  EXPECT_EQ(tokenizer->vocab_size(), 4);
  EXPECT_EQ(tokenizer->end_of_text(), std::nullopt);
  EXPECT_EQ(tokenizer->kind(), "chars");
  EXPECT_EQ(tokenizer->encode("é😀ab"), (Ids{2, 3, 0, 1}));
  EXPECT_EQ(tokenizer->decode(Ids{2, 3, 0, 1}), "é😀ab");
  EXPECT_EQ(message_of([&] { tokenizer->encode("abéx"); }),
            "[tokenizer] the character U+0078 \"x\" at byte 4 of the text is not among the 4 characters of the "
            "vocabulary");
  EXPECT_EQ(message_of([&] { tokenizer->encode("a\U0010FFFF"); }).substr(0, 41),
            "[tokenizer] the character U+10FFFF \"\U0010FFFF\"");
  EXPECT_EQ(message_of([&] { tokenizer->encode("ab\xFF"); }),
            "[tokenizer] byte 0xff at byte 2 of the text is not valid UTF-8, which chars needs");
  EXPECT_EQ(message_of([&] { tokenizer->decode(Ids{4}); }),
            "[tokenizer] id 4 is not in the vocabulary of characters; ids are 0 to 3");
}

TEST(CharsTokenizer, MayEndATextAndIsReadBack) {
  const auto tokenizer = make_chars_tokenizer({U'\0', U'\n', U'"', U'\\', U'a', U'\x2028', U'😀'}, true);
  EXPECT_EQ(tokenizer->vocab_size(), 8);
  EXPECT_EQ(tokenizer->end_of_text(), 7);
  EXPECT_EQ(tokenizer->decode(Ids{4, 7}), "a<|endoftext|>");
  const auto again = parse_tokenizer(tokenizer->to_json(), "x.json");
  EXPECT_EQ(again->vocab_size(), 8);
  EXPECT_EQ(again->end_of_text(), 7);
  EXPECT_EQ(again->decode(Ids{0, 1, 2, 3, 4, 5, 6}), tokenizer->decode(Ids{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(again->to_json(), tokenizer->to_json());
}

TEST(CharsTokenizer, FindsTheCharactersOfTinyShakespeare) {
  const std::filesystem::path path = tests::shared_folder() + "/data/tinyshakespeare/input.txt";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const std::string text = base::read_file(path);
  CharacterCollector first, second;
  first.add(std::string_view(text).substr(0, 500), "a");
  second.add(std::string_view(text).substr(500), "b");
  first.merge(second);
  const auto tokenizer = make_chars_tokenizer(first.characters(), false);
  EXPECT_EQ(tokenizer->vocab_size(), 65);
  EXPECT_EQ(tokenizer->encode("First Citizen:\n"), (Ids{18, 47, 56, 57, 58, 1, 15, 47, 58, 47, 64, 43, 52, 10, 0}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(CharsTokenizer, RefusesACorpusThatIsNotUtf8) {
  EXPECT_EQ(message_of([] { CharacterCollector().add("abc\xE9t\xE9", "latin.txt"); }),
            "[tokenizer] latin.txt: byte 0xe9 at byte 3 is not valid UTF-8, which chars needs; take bytes or bpe, or "
            "convert the text");
  EXPECT_THROW(make_chars_tokenizer({}, true), base::InternalError);
  EXPECT_THROW(make_chars_tokenizer({0xD800}, true), base::InternalError);
}

TEST(OwnJson, SaysWhatIsDamaged) {
  const auto parse = [](std::string_view json) { return message_of([&] { parse_tokenizer(json, "x.json"); }); };
  const std::string at = "[tokenizer] \"x.json\":1: ";
  EXPECT_EQ(parse(""), at + "the JSON ends too early, after 0 bytes; it seems to be cut off");
  EXPECT_EQ(parse(R"({"format": "kin)"), at + "the JSON ends too early, after 15 bytes; it seems to be cut off");
  EXPECT_EQ(parse(R"({"format": oops})"), at + "this is not JSON at byte 12 of the line");
  EXPECT_EQ(parse("[]"), at + "the value is a list; it should be an object");
  EXPECT_EQ(parse(R"({"!": 0})"),
            "[tokenizer] x.json: not a tokenizer.json: it has neither \"model\" nor \"format\"; of encoder.json "
            "and vocab.bpe, or vocab.json and merges.txt, name the folder");
  EXPECT_EQ(parse(R"({"format": "other"})"), at + "\"format\" is \"other\"; it should be \"kintsugi-tokenizer\"");
  const std::string begin = R"({"format": "kintsugi-tokenizer", "version": 1, "kind": )";
  EXPECT_EQ(parse(begin + R"("words"})"),
            at + "\"kind\" is \"words\"; it should be \"bytes\", \"chars\" or \"sentencepiece\"");
  EXPECT_EQ(parse(R"({"format": "kintsugi-tokenizer", "kind": "bytes"})"), at + "\"version\" is missing");
  EXPECT_EQ(parse(R"({"format": "kintsugi-tokenizer", "version": 2, "kind": "bytes"})"),
            at + "\"version\" is 2; it should be 1");
  EXPECT_EQ(parse(begin + R"("bytes", "vocab_size": 256, "end_of_text": 256})"),
            at + "\"vocab_size\" is 256; it should be 257");
  EXPECT_EQ(parse(begin + R"("bytes", "vocab_size": 257})"), at + "\"end_of_text\" is missing");
  EXPECT_EQ(parse(begin + R"("chars", "end_of_text": true, "characters": "ab", "charcters": "c"})"),
            at + "the key \"charcters\" is not known; did you mean \"characters\"?");
  EXPECT_EQ(parse(begin + R"("chars", "end_of_text": 1, "characters": "ab"})"),
            at + "\"end_of_text\" is 1; it should be true or false");
  EXPECT_EQ(parse(begin + R"("chars", "end_of_text": true, "characters": ""})"), at + "\"characters\" is empty");
  EXPECT_EQ(parse(begin + R"("chars", "end_of_text": true, "characters": "acb"})"),
            at + "in \"characters\", U+0062 \"b\" comes after U+0063 \"c\"; code points must rise");
}

}  // namespace
}  // namespace kintsugi::text::own_tokenizers_test
