// Parses a line of JSONL, including the extensions of Python's json module: NaN, Infinity, -Infinity, and unpaired
// surrogates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kintsugi/base/json.h"

namespace kintsugi::data {

// Counts of replaced values.
struct JsonRepairs {
  uint64_t numbers = 0;     // NaN and infinities: replaced by null
  uint64_t surrogates = 0;  // replaced by U+FFFD
};

// Throws UserError "[where] "NAME":NUMBER: ..." for a line that is neither; leaves `repairs` unchanged for valid JSON.
base::Json parse_json_line(std::string_view where, std::string_view name, std::string_view line, int64_t number,
                           JsonRepairs& repairs);

// The text of a field without parsing the rest into values, several times faster. Only of an object whose values are
// strings, whole numbers and literals, without \u and escapes in keys; nothing for any other line, or without that
// field.
std::optional<std::string> text_of_flat_line(std::string_view line, std::string_view field);

}  // namespace kintsugi::data
