// Data of code_set.cpp, written by bench/tokenizers/unicode_tables.py.
#pragma once

#include <cstddef>

namespace kintsugi::text {

struct UnicodeSet {
  const char* names;   // in lower case, without spaces, "_" and "-", each followed by a space
  const char* ranges;  // deltas between the ends of ranges, as variable-length numbers
};

extern const UnicodeSet kUnicodeSets1[], kUnicodeSets2[], kUnicodeSets3[], kUnicodeSets4[];
extern const size_t kNumUnicodeSets1, kNumUnicodeSets2, kNumUnicodeSets3, kNumUnicodeSets4;

}  // namespace kintsugi::text
