// A tokenizer from SentencePiece's .model file.
#pragma once

#include <memory>
#include <string_view>

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// Produces the same ids as SentencePiece's encoder, which adds no control pieces. Invalid UTF-8 becomes byte pieces,
// where SentencePiece uses U+FFFD, or the unknown piece. Throws UserError if the file is malformed.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string_view content, std::string_view where);

// Reads what its to_json wrote.
std::unique_ptr<Tokenizer> read_sentencepiece_json(const base::Json& document, std::string_view where);

}  // namespace kintsugi::text
