// A tokenizer from SentencePiece's .model file.
#pragma once

#include <memory>
#include <string_view>

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// The same ids as SentencePiece's encoder gives, which adds no control pieces. Bytes that are not UTF-8 become their
// byte pieces, where SentencePiece replaces them by U+FFFD, or the unknown piece. UserError if the file is damaged.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string_view content, std::string_view where);

// What its to_json wrote.
std::unique_ptr<Tokenizer> read_sentencepiece_json(const base::Json& document, std::string_view where);

}  // namespace kintsugi::text
