#include "kintsugi/text/read_bpe_json.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/text/small_bpe_test.h"

namespace kintsugi::text::read_bpe_json_test {
namespace {

using Ids = std::vector<int32_t>;
using nlohmann::json;

std::unique_ptr<Tokenizer> read(const json& document) {
  return parse_tokenizer(document.dump(), "x.json");
}

// The error of the small tokenizer after `damage`.
template <typename Damage>
std::string error_after(const Damage& damage) {
  json document = small_bpe();
  damage(document);
  try {
    read(document);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReadBpeJson, MergesInOrder) {
  const auto tokenizer = read(small_bpe());
  EXPECT_EQ(tokenizer->vocab_size(), 261);
  EXPECT_EQ(tokenizer->end_of_text(), 260);
  EXPECT_EQ(tokenizer->encode("low lower"), (Ids{257, 258, 259}));
  EXPECT_EQ(tokenizer->encode("lo<|endoftext|>w"), (Ids{256, 260, id_of('w')}));
  EXPECT_EQ(tokenizer->decode(Ids{258, 260, 259}), " low<|endoftext|>er");
  EXPECT_EQ(tokenizer->to_json(), small_bpe().dump());
  try {
    tokenizer->decode(Ids{261});
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(), "[tokenizer] x.json: id 261 is not in the vocabulary; ids are 0 to 260");
  }
}

TEST(ReadBpeJson, KnowsTheForms) {
  json document = small_bpe();
  document["model"]["merges"] = json::parse(R"([["l", "o"], ["lo", "w"], ["Ġ", "low"], ["e", "r"]])");
  EXPECT_EQ(read(document)->encode(" lower"), (Ids{258, 259}));
  document["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ(read(document)->encode("low"), (Ids{258}));
  document = small_bpe();
  document["pre_tokenizer"]["use_regex"] = false;
  EXPECT_EQ(read(document)->encode("er low"), (Ids{259, 258}));
  const json split = {{"type", "Split"}, {"pattern", {{"Regex", "o"}}}, {"behavior", "Isolated"}, {"invert", false}};
  document["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, document["pre_tokenizer"]}}};
  EXPECT_EQ(read(document)->encode("low"), (Ids{id_of('l'), id_of('o'), id_of('w')}));
  document = small_bpe();
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "NFKC"}}}}};
  EXPECT_EQ(read(document)->encode("ｌｏｗ"), (Ids{257}));
}

TEST(ReadBpeJson, MatchesAddedTokensBeforeAndAfterTheNormalForm) {
  json document = small_bpe();
  document["normalizer"] = {{"type", "NFC"}};
  document["added_tokens"].push_back({{"id", 261}, {"content", "e\u0301"}, {"normalized", true}});
  document["added_tokens"].push_back({{"id", 262}, {"content", "o\u0301"}, {"normalized", false}});
  const auto tokenizer = read(document);
  EXPECT_EQ(tokenizer->encode("\u00E9e\u0301"), (Ids{261, 261}));
  EXPECT_EQ(tokenizer->encode("o\u0301"), (Ids{262}));
  EXPECT_EQ(tokenizer->encode("\u00F3").size(), 2u);
}

TEST(ReadBpeJson, SaysWhichTableIsDamaged) {
  EXPECT_EQ(error_after([](json& d) { d["model"].erase("merges"); }),
            "[tokenizer] \"x.json\":1: \"model.merges\" is missing");
  EXPECT_EQ(error_after([](json& d) { d["model"]["vocab"] = json::array(); }),
            "[tokenizer] \"x.json\":1: \"model.vocab\" is a list; it should be an object");
  EXPECT_EQ(error_after([](json& d) { d["model"]["vocab"] = json::object(); }),
            "[tokenizer] x.json: the vocabulary is empty");
  EXPECT_EQ(error_after([](json& d) { d["model"]["merges"][1] = "lo wx"; }),
            "[tokenizer] x.json: merge 2, \"lo wx\", needs the token \"wx\", which the vocabulary lacks; both must "
            "come from the same tokenizer");
  EXPECT_EQ(error_after([](json& d) { d["model"]["merges"][1] = "w lo"; }),
            "[tokenizer] x.json: merge 2, \"w lo\", needs the token \"wlo\", which the vocabulary lacks; both must "
            "come from the same tokenizer");
  EXPECT_EQ(error_after([](json& d) { d["model"]["merges"][2] = "low"; }),
            "[tokenizer] x.json: merge 3 is \"low\", and should be two tokens with a space between");
  EXPECT_EQ(error_after([](json& d) { d["model"]["merges"][2] = 7; }),
            "[tokenizer] \"x.json\":1: \"model.merges[2]\" is 7; it should be \"left right\" or [\"left\", \"right\"]");
  EXPECT_EQ(error_after([](json& d) { d["model"]["vocab"]["lo"] = 257; }),
            "[tokenizer] x.json: tokens \"lo\" and \"low\" have the same id 257; ids must differ");
  EXPECT_EQ(error_after([](json& d) { d["model"]["vocab"]["lo"] = -1; }),
            "[tokenizer] \"x.json\":1: \"model.vocab.lo\" is -1; it should be a whole number from 0 to 2147483647");
  EXPECT_EQ(error_after([](json& d) { d["model"]["vocab"]["lo"] = 2147483647; }),
            "[tokenizer] x.json: token \"lo\" has id 2147483647, which is too large for a vocabulary of 260 tokens");
  EXPECT_EQ(error_after([](json& d) {
              d["added_tokens"] = json::array();
              for (int i = 0; i < 20; ++i)
                d["model"]["vocab"]["lost" + std::string(1, static_cast<char>('a' + i))] = 261 + i;
            }),
            "[tokenizer] x.json: of 281 tokens 20 are made by none of the 4 merges; the list of merges seems to be cut "
            "off");
}

// As read by Hugging Face's tokenizers 0.23.
TEST(ReadBpeJson, GapsAndAddedTokensAreNumberedAsTheirsAre) {
  json document = small_bpe();  // 260 tokens, and <|endoftext|>
  document["model"]["vocab"]["low"] = 400;
  document["model"]["vocab"]["▁x"] = 401;  // no bytes are spelled so
  document["model"]["vocab"][""] = 402;
  auto tokenizer = read(document);
  EXPECT_EQ(tokenizer->vocab_size(), 403);
  EXPECT_EQ(tokenizer->encode("low lower▁x").size(), 7u);
  EXPECT_EQ(tokenizer->encode("low")[0], 400);
  EXPECT_EQ(tokenizer->encode("<|endoftext|>"), (Ids{262}));  // the number of the model's tokens, not 260
  EXPECT_EQ(tokenizer->end_of_text(), 262);
  EXPECT_EQ(tokenizer->decode(Ids{400, 257, 300, 401, 402}), "low▁x");
  document = small_bpe();
  document["added_tokens"] = json::array();
  const auto add = [&](int id, const char* content, bool single) {
    document["added_tokens"].push_back({{"id", id}, {"content", content}, {"special", true}, {"single_word", single}});
  };
  add(500, "<x>", false), add(7, "<y>", false), add(9, "low", false), add(500, "", false), add(3, "<x>", true);
  tokenizer = read(document);
  EXPECT_EQ(tokenizer->encode("<x> <y>"), (Ids{260, 220, 261}));
  EXPECT_EQ(tokenizer->encode("a<x>").size(), 4u);  // the last of two with one text counts
  EXPECT_EQ(tokenizer->encode("slowed")[1], 257);
  EXPECT_EQ(tokenizer->vocab_size(), 262);
}

TEST(ReadBpeJson, TheLastOfEqualMergesCounts) {
  json document = small_bpe();
  document["model"]["vocab"]["ow"] = 260;
  document["model"]["merges"] = json::parse(R"(["l o", "o w", "lo w", "l o"])");
  EXPECT_EQ(read(document)->encode("low"), (Ids{id_of('l'), 260}));
  document["model"]["merges"] = json::parse(R"(["o w", "l o", "lo w", "o w"])");
  EXPECT_EQ(read(document)->encode("low"), (Ids{257}));
}

TEST(ReadBpeJson, RefusesANumberOutOfRange) {
  std::string content = small_bpe().dump();
  content.replace(content.find("\"lo\":256"), 8, "\"lo\":1e999");
  try {
    parse_tokenizer(content, "x.json");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(),
                 "[tokenizer] \"x.json\":1: \"model.vocab.lo\" is 1e999, which is out of the range of numbers");
  }
}

TEST(ReadBpeJson, SaysWhichAddedTokenIsDamaged) {
  EXPECT_EQ(error_after([](json& d) { d["added_tokens"][0].erase("id"); }),
            "[tokenizer] \"x.json\":1: \"added_tokens[0].id\" is missing");
  EXPECT_EQ(error_after([](json& d) { d["added_tokens"][0]["lstrip"] = "no"; }),
            "[tokenizer] \"x.json\":1: \"added_tokens[0].lstrip\" is \"no\"; it should be true or false");
  EXPECT_EQ(error_after([](json& d) {
              d["model"]["vocab"].erase("A");
              d["added_tokens"][0]["content"] = "<x>";
            }),
            "[tokenizer] x.json: tokens \"er\" and \"<x>\" have the same id 259; ids must differ");
  EXPECT_EQ(error_after([](json& d) { d["added_tokens"] = 1; }),
            "[tokenizer] \"x.json\":1: \"added_tokens\" is 1; it should be a list");
}

TEST(ReadBpeJson, RefusesWhatWouldChangeTheIds) {
  EXPECT_EQ(error_after([](json& d) { d["model"]["dropout"] = 0.1; }),
            "[tokenizer] \"x.json\":1: \"model.dropout\" is 0.1; it should be null, since dropout makes ids random");
}

TEST(ReadBpeJson, SaysWhichByteItLacks) {
  json document = small_bpe();
  document["model"]["vocab"].erase(spell_bytes("\xFF"));
  for (auto& [token, id] : document["model"]["vocab"].items()) {
    if (id == 260 - 1) id = small_bpe()["model"]["vocab"][spell_bytes("\xFF")];
  }
  document["added_tokens"][0]["id"] = 259;
  const auto tokenizer = read(document);
  EXPECT_EQ(tokenizer->encode("é low").size(), 3u);
  try {
    tokenizer->encode("low\xFE\xFF");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(),
                 "[tokenizer] x.json: the text has byte 0xff, for which the vocabulary has no token; make the text "
                 "valid UTF-8, or take a tokenizer with all 256 bytes (bytes, GPT-2's, one trained here)");
  }
}

}  // namespace
}  // namespace kintsugi::text::read_bpe_json_test
