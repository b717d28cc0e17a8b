// SentencePiece's "precompiled_charsmap": texts that are replaced by others, as a double-array trie (Darts) and a list
// of texts.
//   uint32 size of the trie in bytes, uint32 units of the trie, texts that end in NUL; all little-endian
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kintsugi::text {

// Const use is safe from several threads at once.
class Charsmap {
 public:
  Charsmap() = default;  // replaces nothing
  // `where` begins the text of the UserError for a map that is damaged.
  Charsmap(std::string_view bytes, std::string_view where);

  bool empty() const { return units_.empty(); }
  // The longest, or the shortest, text that `text` begins with and that is replaced: its size, and what replaces it.
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
