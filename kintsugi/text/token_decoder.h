// A decoder of tokenizer.json: tokens to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kintsugi/base/json.h"

namespace kintsugi::text {

// Const use is safe from several threads at once.
class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  // Changes tokens, and may join them; joined, those that the last decoder leaves are the text.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

// UserError for a type that is not among the rows of token_decoder.cpp.
std::unique_ptr<TokenDecoder> read_token_decoder(const base::Json& part);

}  // namespace kintsugi::text
