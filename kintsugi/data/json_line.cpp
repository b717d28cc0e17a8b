#include "kintsugi/data/json_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "kintsugi/base/format.h"

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

// Reads an object of strings, whole numbers and literals. Each function returns false where the line is something else.
class FlatLine {
 public:
  explicit FlatLine(std::string_view line) : rest_(line) {}

  bool read(std::string_view field, std::optional<std::string>& found) {
    std::vector<std::string_view> keys;
    if (!takes('{')) return false;
    do {
      std::string_view key, value;
      bool escapes = false;
      if (!text(key, escapes) || escapes || !takes(':') || std::ranges::find(keys, key) != keys.end()) return false;
      keys.push_back(key);
      skip_space();
      if (rest_.starts_with('"')) {
        if (!text(value, escapes)) return false;
        if (key == field) found = escapes ? unescaped(value) : std::string(value);
      } else if (!literal() && !number()) {
        return false;
      }
    } while (takes(','));
    if (!takes('}')) return false;
    skip_space();
    return rest_.empty();
  }

 private:
  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool takes(char c) {
    skip_space();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // What is between the quotes.
  bool text(std::string_view& content, bool& escapes) {
    if (!takes('"')) return false;
    size_t at = 0;
    bool plain = true;
    for (; at < rest_.size() && rest_[at] != '"'; ++at) {
      const auto byte = static_cast<unsigned char>(rest_[at]);
      if (byte < 0x20) return false;
      plain = plain && byte < 0x80;
      if (byte != '\\') continue;
      escapes = true;
      if (++at == rest_.size() || kEscapes.find(rest_[at]) == kEscapes.npos) return false;
    }
    if (at == rest_.size()) return false;
    content = rest_.substr(0, at);
    rest_.remove_prefix(at + 1);
    return plain || base::is_utf8(content);
  }
  bool literal() {
    for (const std::string_view word : {"true", "false", "null"})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return true;
      }
    return false;
  }
  // Of at most 15 digits.
  bool number() {
    size_t at = rest_.starts_with('-') ? 1 : 0;
    const size_t first = at;
    while (at < rest_.size() && rest_[at] >= '0' && rest_[at] <= '9') ++at;
    if (at == first || at > first + 15 || (rest_[first] == '0' && at > first + 1)) return false;
    rest_.remove_prefix(at);
    return true;
  }
  static std::string unescaped(std::string_view content) {
    std::string out;
    out.reserve(content.size());
    for (size_t at = 0; at < content.size(); ++at)
      out += content[at] == '\\' ? kMeanings[kEscapes.find(content[++at])] : content[at];
    return out;
  }

  static constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  std::string_view rest_;
};

}  // namespace

std::optional<std::string> text_of_flat_line(std::string_view line, std::string_view field) {
  std::optional<std::string> found;
  return FlatLine(line).read(field, found) ? found : std::nullopt;
}

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
