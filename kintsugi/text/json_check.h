// Reads JSON of other programs: every deviation is a UserError in one line, "[tokenizer] WHERE: what".
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kintsugi::text {

// The object that `content` holds.
nlohmann::json parse_json_object(std::string_view content, std::string_view where);

// The member `key` of `object`, which must be of this type. `name` is
// what `object` is called in errors.
const nlohmann::json& get_member(const nlohmann::json& object, std::string_view key, nlohmann::json::value_t type,
                                 std::string_view name, std::string_view where);
// The same for an optional flag.
bool get_flag(const nlohmann::json& object, std::string_view key, bool otherwise, std::string_view name,
              std::string_view where);
// `value` as an id.
int32_t read_id(const nlohmann::json& value, std::string_view name, std::string_view where);

// In quotes, with escapes, and shortened if it is long: for a message.
std::string quote(std::string_view text);

}  // namespace kintsugi::text
