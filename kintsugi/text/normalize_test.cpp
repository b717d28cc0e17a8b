#include "kintsugi/text/normalize.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <random>

#include "kintsugi/text/utf8.h"

namespace kintsugi::text::normalize_test {
namespace {

TEST(Normalize, GivesTheFourForms) {
  EXPECT_EQ(normalize("e\u0301 \uFB01", NormalForm::kNfc), "\u00E9 \uFB01");
  EXPECT_EQ(normalize("\u00E9 \uFB01", NormalForm::kNfd), "e\u0301 \uFB01");
  EXPECT_EQ(normalize("e\u0301 \uFB01", NormalForm::kNfkc), "\u00E9 fi");
  EXPECT_EQ(normalize("\u00E9 \uFB01", NormalForm::kNfkd), "e\u0301 fi");
  EXPECT_EQ(normalize("", NormalForm::kNfc), "");
  EXPECT_EQ(parse_normal_form("NFKC"), NormalForm::kNfkc);
  EXPECT_EQ(parse_normal_form("nfc"), std::nullopt);
}

TEST(Normalize, LeavesInvalidBytes) {
  EXPECT_EQ(normalize("\xFF"
                      "e\u0301\xED\xA0\x80\xC3",
                      NormalForm::kNfc),
            "\xFF\u00E9\xED\xA0\x80\xC3");
  EXPECT_EQ(normalize("\x80\u0301", NormalForm::kNfc), "\x80\u0301");
  const std::string nul("e\u0301\0e\u0301", 7);
  EXPECT_EQ(normalize(nul, NormalForm::kNfc), std::string("\u00E9\0\u00E9", 5));
}

// The whole text, in one call of the library.
std::string normalize_whole(const std::string& text) {
  utf8proc_uint8_t* result = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), text.size(), &result,
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::string out(reinterpret_cast<const char*>(result), size);
  std::free(result);
  return out;
}

TEST(Normalize, InPartsIsAsTheWhole) {
  constexpr char32_t kPool[] = {U'a',     U'e',      U' ',      U'\xE9',   U'\xC5',    U'\x300',  U'\x301',  U'\x323',
                                U'\x345', U'\x1100', U'\x1161', U'\x11A8', U'\xAC00',  U'\x1E69', U'\x2126', U'\x212B',
                                U'\x9C7', U'\x9BE',  U'漢',     U'😀',      U'\x2FA1D', U'\n'};
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) append_character(kPool[random() % std::size(kPool)], text);
    ASSERT_EQ(normalize(text, NormalForm::kNfc), normalize_whole(text)) << text;
    ASSERT_TRUE(!is_surely_normal(text, NormalForm::kNfc) || normalize_whole(text) == text) << text;
  }
}

}  // namespace
}  // namespace kintsugi::text::normalize_test
