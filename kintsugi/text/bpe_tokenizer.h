// Byte-level BPE: added tokens, normalization, words, merges, in this order (Hugging Face's pipeline).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kintsugi/text/added_tokens.h"
#include "kintsugi/text/bpe_model.h"
#include "kintsugi/text/normalize.h"
#include "kintsugi/text/split_pattern.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

constexpr std::string_view kEndOfText = "<|endoftext|>";

// The definition of a byte-level BPE tokenizer. Ids without a token decode to nothing.
struct BpeDefinition {
  BpeModel::Options model;
  std::vector<std::pair<int32_t, std::string>> unspelled;  // tokens without bytes, and their texts
  std::vector<AddedToken> added;
  std::vector<NormalForm> normal_forms;
  std::vector<SplitPattern> patterns;
  bool add_prefix_space = false;  // before text that does not begin with a space
  SpecialTokens special;
  std::string json;   // its tokenizer.json; "" to generate it, which requires GPT-2's pattern
  std::string where;  // names the tokenizer in errors
};

// Produces the same ids as Hugging Face's library with the same file and no special tokens: added tokens in the text
// become their ids; the post-processor adds none. If the vocabulary lacks a byte (GPT-NeoX lacks those that never occur
// in valid UTF-8), encoding it throws UserError. Throws UserError if the definition is inconsistent.
std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeDefinition definition);

}  // namespace kintsugi::text
