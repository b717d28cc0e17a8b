// A model of tokenizer.json: words to ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json.h"

namespace kintsugi::text {

// Const use is safe from several threads at once.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of `word`, valid UTF-8 and not empty. UserError if the vocabulary cannot represent it.
  virtual void encode(std::string_view word, std::vector<int32_t>& ids) const = 0;
  // The same for bytes that are not UTF-8.
  virtual void encode_bytes(std::string_view bytes, std::vector<int32_t>& ids) const = 0;
  virtual std::string_view kind() const = 0;
  // The tokens by id, "" where an id is not the model's.
  virtual const std::vector<std::string>& tokens() const = 0;
};

// UserError for a type that is not among the rows of token_model.cpp, and for a damaged vocabulary.
std::unique_ptr<TokenModel> read_token_model(const base::Json& model);

}  // namespace kintsugi::text
