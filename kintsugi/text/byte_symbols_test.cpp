#include "kintsugi/text/byte_symbols.h"

#include <gtest/gtest.h>

namespace kintsugi::text::byte_symbols_test {
namespace {

TEST(ByteSymbols, SpellAndReadBackEveryByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  std::string back;
  ASSERT_TRUE(read_symbols(spell_bytes(all), back));
  EXPECT_EQ(back, all);
  EXPECT_EQ(spell_bytes(" the\n"), "ĠtheĊ");
  EXPECT_EQ(byte_symbol(0xAD), U'Ń');
}

TEST(ByteSymbols, AreInTheOrderOfGpt2) {
  EXPECT_EQ(nth_symbol_byte(0), '!');
  EXPECT_EQ(nth_symbol_byte(93), '~');
  EXPECT_EQ(nth_symbol_byte(94), 0xA1);
  EXPECT_EQ(nth_symbol_byte(188), 0x00);
  EXPECT_EQ(nth_symbol_byte(220), ' ');
  EXPECT_EQ(nth_symbol_byte(255), 0xAD);
  for (int i = 1; i < 256; ++i) EXPECT_LT(byte_symbol(nth_symbol_byte(i - 1)), byte_symbol(nth_symbol_byte(i)));
}

TEST(ByteSymbols, RefuseWhatStandsForNoByte) {
  std::string bytes;
  for (const char* text : {" ", "a b", "▁a", "\xFF", "\xC2\xAD", "ń"}) EXPECT_FALSE(read_symbols(text, bytes)) << text;
}

}  // namespace
}  // namespace kintsugi::text::byte_symbols_test
