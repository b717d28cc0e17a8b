#include "kintsugi/checkpoint/json_text.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::checkpoint {
namespace {

using nlohmann::json;

constexpr int kDeepest = 64;

}  // namespace

json parse_json(std::string_view where, std::string_view subject, std::string_view text) {
  // The library takes a NUL for the end of the text, and would ignore whatever follows it.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    throw base::UserError(where, "{} is not JSON: it holds a NUL at byte {}", subject, nul);
  std::vector<std::set<std::string>> open_objects;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepest) throw base::UserError(where, "{} nests deeper than {} levels", subject, kDeepest);
    if (event == json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == json::parse_event_t::object_end) open_objects.pop_back();
    if (event == json::parse_event_t::key && !open_objects.back().insert(parsed.get<std::string>()).second)
      throw base::UserError(where, "{} names {} twice in one object", subject, in_quotes(parsed.get<std::string>()));
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::parse_error& error) {
    throw base::UserError(where, "{} is not JSON: the error is at byte {} of {}", subject, error.byte, text.size());
  } catch (const json::exception&) {  // a number out of range
    throw base::UserError(where, "{} holds a number that is out of range", subject);
  }
}

std::string in_quotes(std::string_view name) {
  return "\"" + base::one_line(name) + "\"";
}

std::string json_string(std::string_view text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    throw base::UserError("json", "{} is not UTF-8, so it cannot be written as JSON", in_quotes(text));
  }
}

}  // namespace kintsugi::checkpoint
