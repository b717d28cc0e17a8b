// Where a text may be cut so that its parts, tokenized separately, give the ids of the whole.
#pragma once

#include <cstddef>
#include <string_view>

#include "kintsugi/text/white_cuts.h"

namespace kintsugi::data {

enum class CutRule {
  kByte,       // anywhere
  kCharacter,  // between characters
  kWord,       // where no pre-tokenizer of the GPT-2 family joins
};

// The cuts that a tokenizer of this kind ("bytes", "chars", else words) allows.
CutRule cut_rule_of(std::string_view tokenizer_kind);

// The last place in (0, text.size()] that the rule allows, where more text follows `text`; 0 if there is none.
//
// kWord cuts before white space that follows a letter, and that is exact: in these patterns (GPT-2, GPT-NeoX, GPT-4,
// Llama 3) a word that holds a letter ends before white space, whatever comes later, so the part on the left is split
// as it was; and no pattern looks back, so that the part on the right, which begins with the whole run of white space,
// is split as it was. (After a newline it would not be exact: "\s+(?!\S)" takes all of a run at the end of a text, but
// all less one before a word.) After a digit or a mark only a space is taken, since punctuation may take newlines that
// follow it. Normal forms compose nothing over white space. For other tokenizers, `cuts` says before which white space
// a cut is exact.
size_t find_safe_cut(std::string_view text, CutRule rule, const text::WhiteCuts* cuts = nullptr);

}  // namespace kintsugi::data
