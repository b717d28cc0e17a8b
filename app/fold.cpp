#include "app/fold.h"

#include <algorithm>

namespace kintsugi::app {
namespace {

// Counts characters, not bytes: skips UTF-8 continuation bytes.
int columns_of(std::string_view text) {
  return static_cast<int>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string fold(std::string_view text, int columns, int indent, FoldAt at) {
  std::string folded;
  int used = indent;  // of the first line too: what stands before it
  for (bool first = true; !text.empty(); first = false) {
    size_t end = text.find(' ', 1);  // a word, or words, with the spaces before it
    while (at == FoldAt::commas && end < text.size() && text[end - 1] != ',') end = text.find(' ', end + 1);
    end = std::min(end, text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    if (!first && used + columns_of(word) > columns) {
      folded += "\n" + std::string(static_cast<size_t>(indent), ' ');
      word.remove_prefix(word.find_first_not_of(' ') == word.npos ? word.size() : word.find_first_not_of(' '));
      used = indent;
    }
    folded += word;
    used += columns_of(word);
  }
  return folded;
}

}  // namespace kintsugi::app
