// A line of JSONL, also as Python's json module writes it where JSON has no words: NaN, Infinity and -Infinity, and
// surrogates without their other half.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kintsugi/base/json.h"

namespace kintsugi::data {

// What was read as something else.
struct JsonRepairs {
  uint64_t numbers = 0;     // NaN and infinities: null
  uint64_t surrogates = 0;  // U+FFFD
};

// UserError "[where] "NAME":NUMBER: ..." for a line that is neither; of one that is JSON, nothing is added to
// `repairs`.
base::Json parse_json_line(std::string_view where, std::string_view name, std::string_view line, int64_t number,
                           JsonRepairs& repairs);

}  // namespace kintsugi::data
