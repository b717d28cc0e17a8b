#include "kintsugi/text/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "kintsugi/text/bytes_tokenizer.h"
#include "kintsugi/text/sentencepiece_tokenizer.h"
#include "kintsugi/text/small_sentencepiece_test.h"

namespace kintsugi::text::stream_decoder_test {
namespace {

TEST(StreamDecoder, YieldsWholeCharacters) {
  const auto tokenizer = make_bytes_tokenizer();
  StreamDecoder decoder(*tokenizer);
  std::vector<std::string> parts;
  for (const int32_t id : tokenizer->encode("aé😀")) parts.push_back(decoder.add(id));
  EXPECT_EQ(parts, (std::vector<std::string>{"a", "", "é", "", "", "", "😀"}));
  EXPECT_EQ(decoder.flush(), "");
}

// With a tokenizer that adds a space before a text and removes it again.
TEST(StreamDecoder, BehindAPromptAWordKeepsItsSpace) {
  const auto tokenizer = make_sentencepiece_tokenizer(small_sentencepiece(2, true), "x.model");
  const std::vector<int32_t> ids = tokenizer->encode("low lower");
  ASSERT_EQ(ids.size(), 3u);
  const auto rest_after = [&](size_t n) {
    StreamDecoder decoder(*tokenizer, std::span(ids).first(n));
    std::string text;
    for (const int32_t id : std::span(ids).subspan(n)) text += decoder.add(id);
    return text + decoder.flush();
  };
  EXPECT_EQ(rest_after(0), "low lower");
  EXPECT_EQ(rest_after(1), " lower");
  EXPECT_EQ(rest_after(2), "er");
  // An incomplete character of the prompt was shown with it.
  const auto bytes = make_bytes_tokenizer();
  StreamDecoder cut(*bytes, std::vector<int32_t>{'a', 0xE2});
  EXPECT_EQ(cut.flush(), "");
}

TEST(StreamDecoder, LosesNoByte) {
  const auto tokenizer = make_bytes_tokenizer();
  StreamDecoder cut(*tokenizer);
  EXPECT_EQ(cut.add(0xE2), "");
  EXPECT_EQ(cut.add(0x82), "");
  EXPECT_EQ(cut.flush(), "\xE2\x82");
  EXPECT_EQ(cut.flush(), "");
  EXPECT_EQ(cut.add(0xE2), "");
  EXPECT_EQ(cut.add('x'), "\xE2x");
  EXPECT_EQ(cut.add(0xF0), "");
  EXPECT_EQ(cut.add(0xC3), "\xF0");
  EXPECT_EQ(cut.add(0xA9), "é");
  EXPECT_EQ(cut.add(0xFF), "\xFF");
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) {
      text.push_back(static_cast<char>(random() % 4 == 0 ? random() : 0x80 + random() % 128));
    }
    StreamDecoder decoder(*tokenizer);
    std::string joined;
    for (const int32_t id : tokenizer->encode(text)) joined += decoder.add(id);
    ASSERT_EQ(joined + decoder.flush(), text);
  }
}

}  // namespace
}  // namespace kintsugi::text::stream_decoder_test
