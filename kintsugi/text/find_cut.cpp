#include "kintsugi/text/find_cut.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::text {
namespace {

constexpr size_t kReach = 1 << 16;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

size_t find_cut(std::string_view text, size_t most) {
  base::require(most >= 4, "find_cut", "parts of {} bytes cannot hold every character", most);
  if (text.size() <= most) return text.size();
  const size_t least = most - std::min(most, kReach);
  for (size_t at = most; at > least; --at) {
    if (text[at] == ' ' && is_letter(text[at - 1])) return at;
  }
  for (size_t at = most; at + 4 > most; --at) {
    if (!is_continuation(text[at])) return at;
  }
  return most;
}

}  // namespace kintsugi::text
