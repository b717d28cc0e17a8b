#include "kintsugi/text/charsmap.h"

#include "kintsugi/base/error.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

// A unit of Darts: the label in the low 8 bits and the highest bit, whether a value follows in bit 8, the offset of the
// children in the upper 22 bits, in steps of 256 if bit 9 is set. A value has the highest bit set.
bool has_value(uint32_t unit) {
  return unit >> 8 & 1;
}
uint32_t value_of(uint32_t unit) {
  return unit & 0x7FFFFFFF;
}
uint32_t label_of(uint32_t unit) {
  return unit & 0x800000FF;
}
uint32_t offset_of(uint32_t unit) {
  return unit >> 10 << ((unit >> 6) & 8);
}

uint32_t read_uint32(std::string_view bytes) {
  uint32_t number = 0;
  for (int i = 3; i >= 0; --i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, std::string_view where) {
  if (bytes.empty()) return;
  const uint32_t size = bytes.size() < 4 ? 0 : read_uint32(bytes);
  if (size == 0 || size % 4 != 0 || size > bytes.size() - 4) {
    throw base::UserError("tokenizer", "{}: the map of characters is damaged: {} bytes with a trie of {}", where,
                          bytes.size(), size);
  }
  for (uint32_t i = 0; i < size; i += 4) units_.push_back(read_uint32(bytes.substr(4 + i)));
  texts_ = bytes.substr(4 + size);
  if (count_valid(texts_) < texts_.size())
    throw base::UserError("tokenizer", "{}: the map of characters is damaged: a text of it is not UTF-8", where);
}

// Calls f(size, offset of the text) for each key that is a prefix of the text.
template <typename F>
void Charsmap::each(std::string_view text, F&& f) const {
  if (units_.empty()) return;
  uint32_t node = offset_of(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t label = static_cast<uint8_t>(text[i]);
    node ^= label;
    if (label == 0 || node >= units_.size() || label_of(units_[node]) != label) return;
    const uint32_t unit = units_[node];
    node ^= offset_of(unit);
    // A malformed map could end a key within a character.
    if (!has_value(unit) || (i + 1 < text.size() && (static_cast<uint8_t>(text[i + 1]) & 0xC0) == 0x80)) continue;
    if (node >= units_.size() || !f(i + 1, value_of(units_[node]))) return;
  }
}

// The offset of a malformed map may point into a character: the text then begins after it.
std::string_view Charsmap::text_at(uint32_t offset) const {
  if (offset >= texts_.size()) return {};
  std::string_view text = std::string_view(texts_).substr(offset);
  text = text.substr(0, text.find('\0'));
  text.remove_prefix(count_invalid(text));
  return text;
}

std::optional<std::pair<size_t, std::string_view>> Charsmap::longest(std::string_view text) const {
  std::optional<std::pair<size_t, std::string_view>> found;
  each(text, [&](size_t size, uint32_t offset) {
    found = {size, text_at(offset)};
    return true;
  });
  return found;
}

std::optional<std::pair<size_t, std::string_view>> Charsmap::shortest(std::string_view text) const {
  std::optional<std::pair<size_t, std::string_view>> found;
  each(text, [&](size_t size, uint32_t offset) {
    found = {size, text_at(offset)};
    return false;
  });
  return found;
}

}  // namespace kintsugi::text
