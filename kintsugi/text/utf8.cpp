#include "kintsugi/text/utf8.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace kintsugi::text {
namespace {

constexpr uint64_t kHighBits = 0x8080808080808080ULL;

uint8_t byte_at(std::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

// The information in a lead byte: the length of its character, and the range of its second byte (RFC 3629, section 4).
struct Lead {
  int size;
  uint8_t low, high;
};

Lead read_lead(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// The number of leading bytes consistent with the lead byte, up to its size.
int count_agreeing(std::string_view text, Lead lead) {
  if (lead.size < 2 || text.size() < 2) return std::min(lead.size, 1);
  if (byte_at(text, 1) < lead.low || byte_at(text, 1) > lead.high) return 1;
  int n = 2;
  while (n < lead.size && n < static_cast<int>(text.size()) && (byte_at(text, n) & 0xC0) == 0x80) ++n;
  return n;
}

}  // namespace

Character read_character(std::string_view text) {
  if (text.empty()) return {};
  const uint8_t first = byte_at(text, 0);
  if (first < 0x80) return {first, 1};
  const Lead lead = read_lead(first);
  if (lead.size == 0 || count_agreeing(text, lead) != lead.size) return {};
  char32_t code = first & (0x7F >> lead.size);
  for (int i = 1; i < lead.size; ++i) code = code << 6 | (byte_at(text, i) & 0x3F);
  return {code, lead.size};
}

Character read_last_character(std::string_view text) {
  for (size_t n = 1; n <= std::min<size_t>(4, text.size()); ++n) {
    const Character c = read_character(text.substr(text.size() - n));
    if (c.size == static_cast<int>(n)) return c;
  }
  return {};
}

size_t count_valid(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    uint64_t word = 0;
    if (i + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + i, sizeof word);
      if ((word & kHighBits) == 0) {
        i += sizeof word;
        continue;
      }
    }
    const Character c = read_character(text.substr(i));
    if (c.size == 0) break;
    i += c.size;
  }
  return i;
}

size_t count_invalid(std::string_view text) {
  size_t i = 0;
  while (i < text.size() && read_character(text.substr(i)).size == 0) ++i;
  return i;
}

size_t count_unfinished(std::string_view text) {
  for (size_t n = 1; n <= std::min<size_t>(3, text.size()); ++n) {
    const std::string_view end = text.substr(text.size() - n);
    const Lead lead = read_lead(byte_at(end, 0));
    if (lead.size > static_cast<int>(n) && count_agreeing(end, lead) == static_cast<int>(n)) return n;
  }
  return 0;
}

void append_character(char32_t code, std::string& text) {
  if (code < 0x80) {
    text.push_back(static_cast<char>(code));
    return;
  }
  const int size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  const char32_t mark = 0xF00 >> size & 0xFF;
  text.push_back(static_cast<char>(mark | code >> 6 * (size - 1)));
  for (int i = size - 2; i >= 0; --i) text.push_back(static_cast<char>(0x80 | (code >> 6 * i & 0x3F)));
}

std::string describe_character(char32_t code) {
  std::string name = fmt::format("U+{:04X}", static_cast<uint32_t>(code));
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return name;
  name += " \"";
  append_character(code, name);
  return name + "\"";
}

bool is_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 0x09 && code <= 0x0D);
  if (code == 0x85) return true;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

}  // namespace kintsugi::text
