// JSON in our own files, read strictly.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace kintsugi::checkpoint {

// Reads one JSON value. UserError "[where] SUBJECT ..." for text that is not JSON, holds a NUL, names a member of an
// object twice, or nests deeper than 64 levels. `subject` names the text, for example `the header of "a.safetensors"`.
nlohmann::json parse_json(std::string_view where, std::string_view subject, std::string_view text);

// A name from a file, for a message: in double quotes, on one line, cut at 200 bytes.
std::string in_quotes(std::string_view name);

// A JSON string literal. UserError where the text is not UTF-8.
std::string json_string(std::string_view text);

}  // namespace kintsugi::checkpoint
