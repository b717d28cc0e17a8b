#include "kintsugi/text/json_check.h"

#include <limits>

#include "kintsugi/base/error.h"

namespace kintsugi::text {
namespace {

using nlohmann::json;

constexpr size_t kLongestQuote = 60;

std::string_view name_of(json::value_t type) {
  switch (type) {
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "true or false";
    case json::value_t::null:
      return "null";
    default:
      return "a number";
  }
}

}  // namespace

json parse_json_object(std::string_view content, std::string_view where) {
  json document;
  try {
    document = json::parse(content);
  } catch (const json::parse_error& error) {
    if (error.byte > content.size()) {
      throw base::UserError("tokenizer", "{}: the JSON ends too early, after {} bytes; the file seems to be cut off",
                            where, content.size());
    }
    throw base::UserError("tokenizer", "{}: byte {} of {} is not valid JSON there", where, error.byte, content.size());
  }
  if (!document.is_object()) {
    throw base::UserError("tokenizer", "{}: the JSON is {}, and should be an object", where, name_of(document.type()));
  }
  return document;
}

const json& get_member(const json& object, std::string_view key, json::value_t type, std::string_view name,
                       std::string_view where) {
  const auto member = object.find(key);
  if (member == object.end()) {
    throw base::UserError("tokenizer", "{}: {} lacks \"{}\", which should be {}", where, name, key, name_of(type));
  }
  if (member->type() != type) {
    throw base::UserError("tokenizer", "{}: \"{}\" of {} is {}, and should be {}", where, key, name,
                          name_of(member->type()), name_of(type));
  }
  return *member;
}

bool get_flag(const json& object, std::string_view key, bool otherwise, std::string_view name, std::string_view where) {
  if (!object.contains(key)) return otherwise;
  return get_member(object, key, json::value_t::boolean, name, where).get<bool>();
}

int32_t read_id(const json& value, std::string_view name, std::string_view where) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMost) {
    throw base::UserError("tokenizer", "{}: the id of {} is {}, and should be a whole number from 0 to {}", where, name,
                          quote(value.dump(-1, ' ', false, json::error_handler_t::replace)), kMost);
  }
  return value.get<int32_t>();
}

std::string quote(std::string_view text) {
  const bool cut = text.size() > kLongestQuote;
  const json shown = std::string(text.substr(0, kLongestQuote)) + (cut ? "..." : "");
  return shown.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace kintsugi::text
