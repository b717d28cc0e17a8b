// Finds cuts of a text such that tokenizing the parts separately yields the ids of the whole.
#pragma once

#include <cstddef>
#include <string_view>

#include "kintsugi/text/white_cuts.h"

namespace kintsugi::data {

enum class CutRule {
  kByte,       // anywhere
  kCharacter,  // between characters
  kWord,       // where no pre-tokenizer of the GPT-2 family merges
};

// The cuts valid for a tokenizer kind ("bytes", "chars", otherwise words).
CutRule cut_rule_of(std::string_view tokenizer_kind);

// Returns the last position in (0, text.size()] allowed by the rule, where more text follows `text`; 0 if there is
// none.
//
// kWord cuts before white space that follows a letter, which is exact: in these patterns (GPT-2, GPT-NeoX, GPT-4, Llama
// 3) a word containing a letter ends before white space regardless of what follows, so the left part splits as before;
// and no pattern looks behind, so the right part, which begins with the entire run of white space, splits as before. (A
// cut after a newline would not be exact: "\s+(?!\S)" takes an entire run at the end of a text, but leaves the last
// character of it before a word.) After a digit or a mark, only a space is a valid cut, since punctuation may absorb
// newlines that follow it. Unicode normalization does not compose across white space. For other tokenizers, `cuts`
// tells before which white space a cut is exact.
size_t find_safe_cut(std::string_view text, CutRule rule, const text::WhiteCuts* cuts = nullptr);

}  // namespace kintsugi::data
