// BERT's vocab.txt: one token per line, whose id is the line number from 0.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::text {

// From tokenizer_config.json next to it; defaults as in transformers' BertTokenizer.
struct VocabTextOptions {
  bool lowercase = true;
  bool chinese = true;                 // ideographs are words
  std::string strip_accents = "null";  // JSON: null is as `lowercase`
};

// The tokenizer.json of WordPiece with these tokens. Throws UserError for a malformed file, or one without [UNK].
std::string vocab_text_json(std::string_view content, std::string_view where, const VocabTextOptions& options);

}  // namespace kintsugi::text
