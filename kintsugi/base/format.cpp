#include "kintsugi/base/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <span>

namespace kintsugi::base {
namespace {

// One decimal below 100 and none above, in the largest of `units` (each `step` times the previous) that leaves at least
// 1. A number that would round up to `step` uses the next unit.
std::string scaled(double value, double step, std::span<const std::string_view> units) {
  size_t unit = 0;
  while (unit + 1 < units.size() && std::fabs(value) >= step - 0.5) {
    value /= step;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f}{}", value, units[0]);
  return std::fabs(value) < 99.95 ? fmt::format("{:.1f}{}", value, units[unit])
                                  : fmt::format("{:.0f}{}", value, units[unit]);
}

bool is_control(unsigned char c) {
  return c < 0x20 || c == 0x7f;
}

}  // namespace

std::string three_digits(double value) {
  const double size = std::fabs(value);
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

std::string format_bytes(uint64_t bytes) {
  static constexpr std::array<std::string_view, 7> kUnits = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  return scaled(static_cast<double>(bytes), 1024, kUnits);
}

std::string format_count(double count) {
  static constexpr std::array<std::string_view, 5> kUnits = {"", " k", " M", " B", " T"};
  if (!std::isfinite(count)) return "?";
  return scaled(count, 1000, kUnits);
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 0) seconds = 0;
  if (seconds < 9.95) return fmt::format("{:.1f}s", seconds);
  if (seconds > 1e15) return "?";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
  return fmt::format("{}d{:02}h", whole / 86400, whole % 86400 / 3600);
}

std::string format_rate(double value, std::string_view unit) {
  static constexpr std::array<std::string_view, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  if (!std::isfinite(value)) return fmt::format("? {}", unit);
  size_t prefix = 0;
  while (prefix + 1 < kPrefixes.size() && std::fabs(value) >= 999.5) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{} {}{}", three_digits(value), kPrefixes[prefix], unit);
}

std::string format_seconds(double s) {
  if (s >= 1) return fmt::format("{:.3f} s", s);
  if (s >= 1e-3) return fmt::format("{:.2f} ms", s * 1e3);
  return fmt::format("{:.1f} us", s * 1e6);
}

std::string format_time(double seconds) {
  if (!std::isfinite(seconds)) return "? s";
  const double size = std::fabs(seconds);
  if (size >= 0.9995) return three_digits(seconds) + " s";
  if (size >= 0.9995e-3) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds * 1e6) + " us";
}

std::string format_fixed(double value, int decimals) {
  return std::fabs(value) < 1e15 ? fmt::format("{:.{}f}", value, decimals) : fmt::format("{:g}", value);
}

std::string format_loss(double value, int decimals) {
  const bool small = value != 0 && std::fabs(value) < std::pow(10.0, 1 - decimals);
  return small ? fmt::format("{:.2e}", value) : format_fixed(value, decimals);
}

std::string group_digits(int64_t value) {
  std::string digits = fmt::format("{}", value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string counted(int64_t n, std::string_view one, std::string_view many) {
  if (n == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", group_digits(n), one) : fmt::format("{} {}", group_digits(n), many);
}

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, and values beyond U+10FFFF.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0)) return 0;
  if ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) >= 0x90)) return 0;
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

namespace {

// Code point of a character of two or three bytes.
unsigned code_of(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 2) return (byte(0) & 0x1fU) << 6 | (byte(1) & 0x3fU);
  return (byte(0) & 0xfU) << 12 | (byte(1) & 0x3fU) << 6 | (byte(2) & 0x3fU);
}

// Passed through unchanged by printable(), in one piece.
constexpr std::string_view kPlain =
    "\n\t !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";

// Bidirectional marks, embeddings, overrides and isolates, which can make a name look like another, and line and
// paragraph separators.
bool turns_text(std::string_view character) {
  if (character.size() != 2 && character.size() != 3) return false;
  const unsigned code = code_of(character);
  return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

// `text` must not be empty. Removes its first character, or an invalid byte, and returns it or its escape.
std::string next_shown(std::string_view& text) {
  const size_t length = utf8_length(text);
  const auto first = static_cast<unsigned char>(text[0]);
  // U+0080 to U+009F are control characters too.
  const bool late_control = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
  const std::string_view character = text.substr(0, length == 0 ? 1 : length);
  text.remove_prefix(character.size());
  if (first == '\n') return "\\n";
  if (first == '\t') return "\\t";
  if (first == '\r') return "\\r";
  if (length == 0 || is_control(first)) return fmt::format("\\x{:02x}", first);
  if (turns_text(character)) return fmt::format("\\u{:04x}", code_of(character));
  if (late_control) return fmt::format("\\u{:04x}", static_cast<unsigned char>(character[1]));
  return std::string(character);
}

}  // namespace

std::string one_line(std::string_view text, size_t limit) {
  std::string line;
  while (!text.empty()) {
    const std::string piece = next_shown(text);
    if (line.size() + piece.size() > limit) return line + "...";
    line += piece;
  }
  return line;
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    // Fast path: printable ASCII, which is nearly everything.
    const size_t plain = std::min(text.find_first_not_of(kPlain), text.size());
    shown += text.substr(0, plain);
    text.remove_prefix(plain);
    if (!text.empty()) shown += next_shown(text);
  }
  return shown;
}

std::string without_middle(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  const auto inside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  size_t begin = (limit - 3) / 3, end = text.size() - (limit - 3 - begin);
  while (begin > 0 && inside(begin)) --begin;
  while (end < text.size() && inside(end)) ++end;
  return fmt::format("{}...{}", text.substr(0, begin), text.substr(end));
}

std::string in_quotes(std::string_view text, size_t limit) {
  return "\"" + one_line(text, limit) + "\"";
}

}  // namespace kintsugi::base
