// BERT's vocab.txt: a token on each line, whose number from 0 on is its id.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::text {

// What tokenizer_config.json beside it says; otherwise as transformers' BertTokenizer.
struct VocabTextOptions {
  bool lowercase = true;
  bool chinese = true;                 // ideographs are words
  std::string strip_accents = "null";  // JSON: null is as `lowercase`
};

// The tokenizer.json of WordPiece with these tokens. UserError for a damaged file, or one without [UNK].
std::string vocab_text_json(std::string_view content, std::string_view where, const VocabTextOptions& options);

}  // namespace kintsugi::text
