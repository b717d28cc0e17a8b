// Words of a text, for comparisons that ignore case and punctuation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kintsugi::corpus {

// Splits at ASCII white space; calls f(std::string_view) for each word.
template <typename F>
void for_each_word(std::string_view text, F&& f) {
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  for (size_t i = 0; i < text.size();) {
    while (i < text.size() && is_space(text[i])) ++i;
    const size_t begin = i;
    while (i < text.size() && !is_space(text[i])) ++i;
    if (i > begin) f(text.substr(begin, i - begin));
  }
}

// The hash of each word, in order: ASCII letters in lower case, without ASCII punctuation; skips words that consist of
// punctuation.
std::vector<uint64_t> word_hashes(std::string_view text);

// The hash of each run of `words` consecutive words; a shorter text is one run. Empty if there are no words.
std::vector<uint64_t> shingles(const std::vector<uint64_t>& hashes, int64_t words);

}  // namespace kintsugi::corpus
