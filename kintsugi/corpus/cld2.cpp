// Language detection by CLD2.
#include <algorithm>
#include <cstdio>  // CLD2's header needs it
#include <string>

#include "kintsugi/corpus/filters.h"
//
#include <cld2/public/compact_lang_det.h>

namespace kintsugi::corpus {

bool knows_languages() {
  return true;
}

bool is_language(std::string_view code) {
  for (int i = 0; i < CLD2::NUM_LANGUAGES; ++i)
    if (code == CLD2::LanguageCode(static_cast<CLD2::Language>(i))) return true;
  return false;
}

std::string language_of(std::string_view text) {
  bool reliable = false;
  const CLD2::Language language =
      CLD2::DetectLanguage(text.data(), static_cast<int>(std::min<size_t>(text.size(), 1 << 20)), true, &reliable);
  return CLD2::LanguageCode(language);
}

}  // namespace kintsugi::corpus
