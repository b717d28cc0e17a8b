// SentencePiece's "precompiled_charsmap": replacements of texts, as a double-array trie (Darts) and a list of texts.
//   uint32 size of the trie in bytes, uint32 units of the trie, NUL-terminated texts; all little-endian
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kintsugi::text {

// Const use is thread-safe.
class Charsmap {
 public:
  Charsmap() = default;  // replaces nothing
  // `where` begins the message of the UserError for a malformed map.
  Charsmap(std::string_view bytes, std::string_view where);

  bool empty() const { return units_.empty(); }
  // The longest, or the shortest, prefix of `text` with a replacement: its size and the replacement.
  std::optional<std::pair<size_t, std::string_view>> longest(std::string_view text) const;
  std::optional<std::pair<size_t, std::string_view>> shortest(std::string_view text) const;

 private:
  template <typename F>
  void each(std::string_view text, F&& f) const;
  std::string_view text_at(uint32_t offset) const;

  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace kintsugi::text
