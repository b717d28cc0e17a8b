// Optional members of tokenizer.json, and lists of kinds selected by "type".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"

namespace kintsugi::text {

// Returns nothing if the member is absent or null.
std::optional<base::Json> find_part(const base::Json& object, std::string_view key);
bool flag(const base::Json& object, std::string_view key, bool otherwise);
// Exactly one character. Throws UserError otherwise.
char32_t one_character(const base::Json& value);

// A kind of normalizer, pre-tokenizer and so on: its name in "type", and its parser.
template <typename Part>
struct PartRow {
  std::string_view type;
  Part (*read)(const base::Json& part);
};

// Parses by the row of the part's type; throws UserError "WHAT TYPE is not supported; supported are ...".
template <typename Part>
Part read_by_type(const base::Json& part, std::span<const PartRow<Part>> rows, std::string_view what) {
  const base::Json type = part.at("type");
  std::string known;
  for (const auto& row : rows) {
    if (row.type == type.text()) return row.read(part);
    known += (known.empty() ? "" : ", ") + std::string(row.type);
  }
  type.fail("{} {} is not supported; supported are {}", what, base::in_quotes(type.text()), known);
}

}  // namespace kintsugi::text
