#include "kintsugi/text/pipeline_tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "kintsugi/base/error.h"
#include "kintsugi/text/pipeline_goldens_test.h"
#include "kintsugi/text/stream_decoder.h"
#include "kintsugi/text/word_splitter.h"

namespace kintsugi::text::pipeline_tokenizer_test {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

const GoldenTokenizer& golden(std::string_view name) {
  for (const auto& each : kGoldens)
    if (each.name == name) return each;
  throw std::runtime_error("no such golden tokenizer");
}

std::unique_ptr<Tokenizer> read_golden(std::string_view name) {
  return parse_tokenizer(golden(name).json, "x.json");
}

template <typename Damage>
std::string error_after(std::string_view name, const Damage& damage) {
  json document = json::parse(golden(name).json);
  damage(document);
  try {
    parse_tokenizer(document.dump(), "x.json");
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(PipelineTokenizer, GivesWhatHuggingFaceGives) {
  for (const GoldenTokenizer& made : kGoldens) {
    SCOPED_TRACE(made.name);
    const auto tokenizer = parse_tokenizer(made.json, "x.json");
    const auto again = parse_tokenizer(tokenizer->to_json(), "again.json");
    for (const Golden& expected : made.texts) {
      EXPECT_EQ(tokenizer->encode(expected.text), expected.ids) << expected.text;
      EXPECT_EQ(again->encode(expected.text), expected.ids) << expected.text;
      EXPECT_EQ(tokenizer->decode(expected.ids), expected.decoded) << expected.text;
    }
    EXPECT_EQ(tokenizer->end_of_text(), 2);
    EXPECT_EQ(tokenizer->special_tokens().before, Ids{1});
    EXPECT_EQ(tokenizer->special_tokens().after, Ids{2});
  }
}

TEST(PipelineTokenizer, GivesWhatHuggingFaceGivesForEachFamily) {
  for (const GoldenTokenizer& made : kFamilyGoldens) {
    SCOPED_TRACE(made.name);
    const auto tokenizer = parse_tokenizer(made.json, "x.json");
    for (const Golden& expected : made.texts) {
      EXPECT_EQ(tokenizer->encode(expected.text), expected.ids) << expected.text;
      EXPECT_EQ(tokenizer->decode(expected.ids), expected.decoded) << expected.text;
    }
  }
}

TEST(PipelineTokenizer, DecodesOneByOneWhatItDecodesAtOnce) {
  for (const GoldenTokenizer& made : kGoldens) {
    SCOPED_TRACE(made.name);
    const auto tokenizer = parse_tokenizer(made.json, "x.json");
    for (const Golden& expected : made.texts) {
      StreamDecoder decoder(*tokenizer);
      std::string text;
      for (const int32_t id : expected.ids) text += decoder.add(id);
      EXPECT_EQ(text + decoder.flush(), expected.decoded) << expected.text;
    }
  }
}

TEST(PipelineTokenizer, EncodesBytesThatAreNotUtf8) {
  const auto llama = read_golden("Llama");
  const std::string text = "low \xFF\xC3low";
  EXPECT_EQ(llama->decode(llama->encode(text)), text);
  EXPECT_EQ(read_golden("Bert")->encode("low \xFF"), (Ids{4, 0}));
  const auto bytes = read_golden("ByteLevelNormalizer");
  EXPECT_EQ(bytes->decode(bytes->encode(text)), text);
}

TEST(PipelineTokenizer, ContinuesAText) {
  for (const char* name : {"Llama", "Metaspace_always", "Metaspace_first", "Unigram", "Bert"}) {
    SCOPED_TRACE(name);
    const auto tokenizer = read_golden(name);
    auto ids = tokenizer->encode("the low");
    tokenizer->encode_continued(" lower the", ids);
    EXPECT_EQ(ids, tokenizer->encode("the low lower the"));
  }
}

TEST(PipelineTokenizer, IsLinearInLongWords) {
  const auto tokenizer = read_golden("Llama");
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "low";
  EXPECT_EQ(tokenizer->encode(text).size(), 100000u);
  EXPECT_EQ(tokenizer->encode(std::string(499999, ' ')).size(), 250000u);  // nowhere cut: pairs of marks
}

// By definition: merges the pair that is first in the list of merges, leftmost among equals, until none is left.
Ids merge_slowly(const json& model, std::vector<std::string> symbols) {
  while (true) {
    size_t best = symbols.size(), best_rank = model["merges"].size();
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        if (model["merges"][rank] == json{symbols[i], symbols[i + 1]}) best = i, best_rank = rank;
      }
    }
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const auto& symbol : symbols) ids.push_back(model["vocab"][symbol]);
  return ids;
}

TEST(PipelineTokenizer, MergesByTheDefinition) {
  json document = json::parse(golden("Llama").json);
  document["normalizer"] = nullptr;
  for (const auto& pair : {json{"low", "er"}, json{"w", "e"}, json{"▁", "l"}, json{"r", "the"}}) {
    document["model"]["vocab"][pair[0].get<std::string>() + pair[1].get<std::string>()] =
        document["model"]["vocab"].size();
    document["model"]["merges"].push_back(pair);
  }
  const auto tokenizer = parse_tokenizer(document.dump(), "x.json");
  const std::vector<std::string> characters = {"l", "o", "w", "e", "r", "t", "h", "▁", "a"};
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::string> symbols(1 + random() % 120);
    std::string text;
    for (auto& symbol : symbols) text += symbol = characters[random() % characters.size()];
    EXPECT_EQ(tokenizer->encode(text), merge_slowly(document["model"], symbols)) << text;
  }
}

TEST(PipelineTokenizer, RefusesByName) {
  EXPECT_EQ(
      error_after("Llama", [](json& d) { d["normalizer"]["normalizers"][0]["type"] = "X"; }),
      "[tokenizer] \"x.json\":1: normalizer \"X\" is not supported; supported are Sequence, NFC, NFD, NFKC, NFKD, "
      "Prepend, Replace, Lowercase, Strip, StripAccents, Nmt, BertNormalizer, Precompiled, "
      "ByteLevel");
  EXPECT_EQ(error_after("Bert", [](json& d) { d["pre_tokenizer"]["type"] = "X"; }),
            "[tokenizer] \"x.json\":1: pre-tokenizer \"X\" is not supported; supported are Sequence, ByteLevel, "
            "Metaspace, Split, BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, Digits, UnicodeScripts, "
            "FixedLength, CharDelimiterSplit");
  EXPECT_EQ(error_after("Bert", [](json& d) { d["decoder"]["type"] = "CTC"; }),
            "[tokenizer] \"x.json\":1: decoder \"CTC\" is not supported; supported are Sequence, ByteLevel, Metaspace, "
            "Replace, ByteFallback, Fuse, Strip, WordPiece, BPEDecoder");
  EXPECT_EQ(error_after("Bert", [](json& d) { d["model"]["type"] = "X"; }),
            "[tokenizer] \"x.json\":1: model \"X\" is not supported; supported are BPE, Unigram, WordPiece, WordLevel");
  EXPECT_EQ(error_after("Bert", [](json& d) { d["post_processor"]["type"] = "X"; }),
            "[tokenizer] \"x.json\":1: post-processor \"X\" is not supported; supported are Sequence, "
            "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel");
}

// The words of Hugging Face's tokenizers 0.23, between bars.
TEST(PipelineTokenizer, CutsByScriptsLengthAndDelimiter) {
  const auto words = [](const std::string& part, const std::string& text) {
    std::string all;
    const auto json = base::Json::parse("tokenizer", "part", part);
    read_word_splitter(json)->split(text, Place::kBegin, [&](std::string_view word, Place) {
      all += (all.empty() ? "" : "|") + std::string(word);
    });
    return all;
  };
  const std::string scripts = R"({"type":"UnicodeScripts"})";
  EXPECT_EQ(words(scripts, "abc 字かな9 мир 1a"), "abc |字かな|9 |мир |1|a");
  EXPECT_EQ(words(scripts, "ー字 ー a"), "ー字 ー |a");
  EXPECT_EQ(words(scripts, " a字"), "a|字");
  EXPECT_EQ(words(scripts, "  "), "");
  EXPECT_EQ(words(R"({"type":"FixedLength","length":3})", "abcdefgé字h"), "abc|def|gé字|h");
  EXPECT_EQ(words(R"({"type":"CharDelimiterSplit","delimiter":"x"})", "axbxxcx"), "a|b|c");
}

// As read by Hugging Face's tokenizers 0.23.
TEST(PipelineTokenizer, GapsAndAddedTokensAreNumberedAsTheirsAre) {
  const auto read = [](const char* model, const char* added) {
    return parse_tokenizer(std::string(R"({"added_tokens":[)") + added + R"(],"model":)" + model + "}", "x.json");
  };
  const auto token = [](int id, const std::string& text) {
    return R"({"id":)" + std::to_string(id) + R"(,"content":")" + text + R"(","special":true})";
  };
  const char* words = R"({"type":"WordLevel","vocab":{"a":0,"b":1,"c":5},"unk_token":"a"})";
  EXPECT_EQ(read(words, token(7, "<y>").c_str())->encode("<y>c"), (Ids{3, 5}));
  // Ids of tokens that the model knows do not count.
  const std::string known = token(5, "c") + "," + token(7, "<y>") + "," + token(8, "<z>");
  const char* gap = R"({"type":"WordLevel","vocab":{"a":0,"b":1,"c":9},"unk_token":"a"})";
  EXPECT_EQ(read(gap, known.c_str())->encode("<y>c<z>"), (Ids{3, 9, 4}));
  const char* pieces = R"({"type":"WordPiece","vocab":{"a":0,"b":4},"unk_token":"a"})";
  EXPECT_EQ(read(pieces, token(9, "[X]").c_str())->encode("b[X]"), (Ids{4, 2}));
  const char* unigram = R"({"type":"Unigram","unk_id":0,"vocab":[["<u>",0],["a",-1],["b",-2],["a",-3]]})";
  EXPECT_EQ(read(unigram, token(9, "[X]").c_str())->encode("ab[X]"), (Ids{3, 2, 4}));
  const char* merged = R"({"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"bc":4},"merges":["a b","b c","a b"]})";
  EXPECT_EQ(read(merged, "")->encode("abc"), (Ids{0, 4}));
  const char* full = R"({"type":"WordLevel","vocab":{"a":0,"b":1,"c":3},"unk_token":"a"})";
  EXPECT_THROW(read(full, token(7, "<y>").c_str()), base::UserError);  // both would be 3
}

TEST(PipelineTokenizer, SaysWhatIsDamaged) {
  EXPECT_EQ(error_after("Llama", [](json& d) { d["model"]["vocab"]["low"] = 1; }),
            "[tokenizer] \"x.json\":1: tokens \"<s>\" and \"low\" have the same id 1; ids must differ");
  EXPECT_EQ(error_after("Llama", [](json& d) { d["model"]["vocab"].erase("low"); }),
            "[tokenizer] \"x.json\":1: merge 2, \"lo w\", needs the token \"low\", which the vocabulary lacks");
  EXPECT_EQ(error_after("Llama", [](json& d) { d["model"]["unk_token"] = "x?"; }),
            "[tokenizer] \"x.json\":1: \"model.unk_token\" is \"x?\"; it should be a token of the vocabulary");
  EXPECT_EQ(error_after("Unigram", [](json& d) { d["model"]["vocab"] = json::array(); }),
            "[tokenizer] \"x.json\":1: the vocabulary is empty");
  EXPECT_EQ(
      error_after("Metaspace_first", [](json& d) { d["pre_tokenizer"]["prepend_scheme"] = "x"; }),
      "[tokenizer] \"x.json\":1: \"pre_tokenizer.prepend_scheme\" is \"x\"; it should be \"always\", \"first\" or "
      "\"never\"");
}

}  // namespace
}  // namespace kintsugi::text::pipeline_tokenizer_test
