#include "kintsugi/data/json_line.h"

#include <array>
#include <charconv>
#include <optional>

namespace kintsugi::data {
namespace {

constexpr std::array<std::string_view, 3> kNumbers = {"NaN", "Infinity", "-Infinity"};

// The code unit of "\uXXXX" at the beginning of a text.
std::optional<uint32_t> unit_at(std::string_view text) {
  if (text.size() < 6 || !text.starts_with("\\u")) return std::nullopt;
  uint32_t unit = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  return error == std::errc() && end == text.data() + 6 ? std::optional(unit) : std::nullopt;
}

bool is_high(uint32_t unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
bool is_low(uint32_t unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

// The line as valid JSON.
std::string repaired(std::string_view line, JsonRepairs& repairs) {
  std::string out;
  out.reserve(line.size());
  bool in_text = false;
  for (size_t at = 0; at < line.size();) {
    const std::string_view rest = line.substr(at);
    if (!in_text) {
      size_t taken = 0;
      for (const std::string_view number : kNumbers)
        if (rest.starts_with(number)) taken = number.size();
      if (taken > 0) {
        out += "null";
        ++repairs.numbers;
        at += taken;
        continue;
      }
    } else if (const auto unit = unit_at(rest); unit && (is_high(*unit) || is_low(*unit))) {
      const auto next = unit_at(rest.substr(6));
      const bool pair = is_high(*unit) && next && is_low(*next);
      const size_t taken = pair ? 12 : 6;
      out += pair ? rest.substr(0, taken) : "\\uFFFD";
      repairs.surrogates += pair ? 0 : 1;
      at += taken;
      continue;
    } else if (rest[0] == '\\' && rest.size() > 1) {
      out += rest.substr(0, 2);
      at += 2;
      continue;
    }
    in_text ^= rest[0] == '"';
    out += rest[0];
    ++at;
  }
  return out;
}

bool may_need_repair(std::string_view line) {
  for (const std::string_view part : {"NaN", "Infinity", "\\ud", "\\uD"})
    if (line.find(part) != line.npos) return true;
  return false;
}

}  // namespace

base::Json parse_json_line(std::string_view where, std::string_view name, std::string_view line, int64_t number,
                           JsonRepairs& repairs) {
  if (!may_need_repair(line)) return base::Json::parse(where, name, line, number);
  JsonRepairs made;
  const std::string text = repaired(line, made);
  base::Json json = base::Json::parse(where, name, text, number);
  repairs.numbers += made.numbers;
  repairs.surrogates += made.surrogates;
  return json;
}

}  // namespace kintsugi::data
