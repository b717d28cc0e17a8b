// A model of tokenizer.json: words to ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json.h"

namespace kintsugi::text {

// Const use is thread-safe.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of `word`, nonempty valid UTF-8. Throws UserError if the vocabulary cannot represent it.
  virtual void encode(std::string_view word, std::vector<int32_t>& ids) const = 0;
  // The same for invalid UTF-8.
  virtual void encode_bytes(std::string_view bytes, std::vector<int32_t>& ids) const = 0;
  virtual std::string_view kind() const = 0;
  // The tokens by id, "" if the model lacks an id.
  virtual const std::vector<std::string>& tokens() const = 0;
};

// Throws UserError for a type that is not among the rows of token_model.cpp, and for a malformed vocabulary.
std::unique_ptr<TokenModel> read_token_model(const base::Json& model);

}  // namespace kintsugi::text
