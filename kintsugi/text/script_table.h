// Scripts of characters as Hugging Face's UnicodeScripts tells them apart, written by bench/tokenizers/script_table.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::text {

struct ScriptRange {
  char32_t first, last;
  int16_t script;  // a number
};

// Sorted; what is in none has no script of its own.
extern const ScriptRange kScriptRanges[];
extern const size_t kNumScriptRanges;

}  // namespace kintsugi::text
