// The tokens of a model of tokenizer.json, by id and by text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kintsugi/base/json.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {

struct Vocabulary {
  std::vector<std::string> tokens;  // [id], "" if the model lacks an id
  std::unordered_map<std::string, int32_t> ids;

  // -1 if there is none.
  int32_t find(const std::string& token) const;
};

// An object of tokens and ids, possibly with gaps. Throws UserError for an empty vocabulary, a duplicate id, and one
// that is too large for the number of tokens.
Vocabulary read_vocabulary(const base::Json& object);

// The id of the token that the member names; -1 if the member is absent or null. Throws UserError if there is no such
// token.
int32_t find_token(const base::Json& model, std::string_view key, const Vocabulary& vocabulary);

// Throws UserError: the vocabulary cannot represent `text`, a character or invalid UTF-8.
[[noreturn]] void refuse_unknown(std::string_view text);

// Ids by character.
class CharacterIds {
 public:
  void set(char32_t code, int32_t id);
  int32_t find(char32_t code) const { return code < ids_.size() ? ids_[code] : -1; }  // -1 if there is none

 private:
  std::vector<int32_t> ids_;
};

}  // namespace kintsugi::text
