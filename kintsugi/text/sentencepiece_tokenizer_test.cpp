#include "kintsugi/text/sentencepiece_tokenizer.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/text/small_sentencepiece_test.h"

namespace kintsugi::text::sentencepiece_tokenizer_test {
namespace {

using Ids = std::vector<int32_t>;

constexpr int kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4;

std::unique_ptr<Tokenizer> make(int model, bool bytes) {
  return make_sentencepiece_tokenizer(small_sentencepiece(model, bytes), "x.model");
}

std::string error_of(const std::string& content) {
  try {
    make_sentencepiece_tokenizer(content, "x.model");
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SentencePiece, MergesByScore) {
  const auto tokenizer = make(kBpe, true);
  EXPECT_EQ(tokenizer->kind(), "sentencepiece");
  EXPECT_EQ(tokenizer->vocab_size(), 4 + 256 + 11);
  EXPECT_EQ(tokenizer->end_of_text(), 2);
  EXPECT_EQ(tokenizer->special_tokens().before, Ids{1});
  EXPECT_EQ(tokenizer->encode(""), Ids{});
  EXPECT_EQ(tokenizer->encode("lower  low"), (Ids{269, 270, 260, 269}));
  EXPECT_EQ(tokenizer->encode("\xC3\xA9<sep>low"), (Ids{260, 4 + 0xC3, 4 + 0xA9, 3, 268}));
  for (const char* text : {"lower  low", " low ", "\xC3\xA9<sep>low", "low \xFFlow"})
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  const auto again = parse_tokenizer(tokenizer->to_json(), "again");
  EXPECT_EQ(again->to_json(), tokenizer->to_json());
  EXPECT_EQ(again->encode("lower  low"), (Ids{269, 270, 260, 269}));
}

TEST(SentencePiece, TakesTheBestSum) {
  const auto tokenizer = make(kUnigram, false);
  EXPECT_EQ(tokenizer->encode("  lower  low "), (Ids{13, 14, 13}));
  EXPECT_EQ(tokenizer->encode("lowAxx"), (Ids{13, 10, 0}));
  EXPECT_EQ(tokenizer->decode(Ids{1, 13, 10, 0, 2}), "lowB \u2047 ");
  EXPECT_EQ(tokenizer->encode("low<sep>"), (Ids{13, 3}));
  // A user-defined piece is scored -0.1, so it may be part of a better piece.
  const std::string more =
      small_sentencepiece(kUnigram, false) + piece_field("\u2581low<sep>", -0.5, 1) + piece_field("r<sep>", -9.2, 1);
  EXPECT_EQ(make_sentencepiece_tokenizer(more, "x.model")->encode("low<sep>lor<sep>"), (Ids{15, 11, 16}));
}

TEST(SentencePiece, TakesWordsAndCharacters) {
  EXPECT_EQ(make(kWord, false)->encode("low lower low"), (Ids{13, 0, 13}));
  EXPECT_EQ(make(kChar, false)->encode("low x"), (Ids{4, 5, 6, 7, 4, 0}));
}

TEST(SentencePiece, ContinuesAText) {
  for (const int model : {kUnigram, kBpe}) {
    const auto tokenizer = make(model, model == kBpe);
    Ids ids = tokenizer->encode("low");
    tokenizer->encode_continued("  lower", ids);
    EXPECT_EQ(ids, tokenizer->encode("low  lower"));
  }
}

TEST(SentencePiece, SaysWhatIsDamaged) {
  const std::string file = small_sentencepiece(kBpe, true);
  EXPECT_EQ(error_of(""), "[tokenizer] x.model: not a SentencePiece model: it has no pieces");
  EXPECT_EQ(error_of(file.substr(0, 100)),
            "[tokenizer] x.model: not a SentencePiece model, or damaged 97 bytes into a message of 100");
  EXPECT_EQ(error_of(file + piece_field("low", 0, 1)), "[tokenizer] x.model: piece 271, \"low\", is there twice");
  EXPECT_EQ(error_of(file + piece_field("x", 0, 2)),
            "[tokenizer] x.model: there are 2 unknown pieces, and there should be one");
  EXPECT_EQ(error_of(file + piece_field("x", 0, 7)),
            "[tokenizer] x.model: piece 271 has type 7, and should have one from 1 to 6");
  EXPECT_EQ(error_of(file + piece_field("\xFF", 0, 1)),
            "[tokenizer] x.model: piece 271 is \"\\xff\", and should be a text in UTF-8");
  EXPECT_EQ(error_of(file + piece_field("x", 0, 6)),
            "[tokenizer] x.model: piece 271, \"x\", is a byte piece and must be written as \"<0x0A>\"");
  EXPECT_EQ(error_of(file + piece_field("x", 0, 5)),
            "[tokenizer] x.model: piece 271, \"x\", is unused, which is not supported in BPE");
  EXPECT_EQ(error_of(piece_field("<unk>", 0, 2) + bytes_field(2, number_field(35, 1))),
            "[tokenizer] x.model: 0 of 256 bytes have a piece; with byte_fallback all must");
  EXPECT_EQ(error_of(piece_field("<unk>", 0, 2) + bytes_field(3, bytes_field(2, "abc"))),
            "[tokenizer] x.model: the map of characters is damaged: 3 bytes with a trie of 0");
}

}  // namespace
}  // namespace kintsugi::text::sentencepiece_tokenizer_test
