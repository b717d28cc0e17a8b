// A decoder of tokenizer.json: tokens to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kintsugi/base/json.h"

namespace kintsugi::text {

// Const use is thread-safe.
class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  // Transforms and possibly joins tokens; the concatenated output of the last decoder is the text.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

// Throws UserError for a type that is not among the rows of token_decoder.cpp.
std::unique_ptr<TokenDecoder> read_token_decoder(const base::Json& part);

}  // namespace kintsugi::text
