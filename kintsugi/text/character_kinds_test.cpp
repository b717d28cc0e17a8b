#include "kintsugi/text/character_kinds.h"

#include <gtest/gtest.h>

namespace kintsugi::text::character_kinds_test {

// As in Hugging Face's tokenizers, regardless of the Unicode version of the system's library.
TEST(CharacterKinds, AreThoseOfUnicode8) {
  EXPECT_TRUE(is_punctuation(0x166D));
  EXPECT_TRUE(is_punctuation(0x3002));
  EXPECT_FALSE(is_punctuation(0x1885));
  EXPECT_TRUE(is_nonspacing_mark(0x0301));
  EXPECT_TRUE(is_nonspacing_mark(0x1734));
  for (const char32_t code : {0x0C04, 0x1885, 0x1886, 0xA9BD})
    EXPECT_FALSE(is_nonspacing_mark(code)) << static_cast<uint32_t>(code);
  EXPECT_TRUE(is_mark(0x1885));
}

}  // namespace kintsugi::text::character_kinds_test
