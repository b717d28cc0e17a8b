// Declarations next to a tokenizer on the tokens around texts: which end a document, begin one, or end a generated
// text. Stored in tokenizer.json as the member "kintsugi" of its "model", which other programs ignore.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// Absent: as in the tokenizer itself.
struct DeclaredTokens {
  std::optional<int32_t> end;           // ends a document
  std::optional<int32_t> begin;         // begins the documents of a corpus
  std::vector<int32_t> stops = {};      // each ends a generated text
  std::optional<SpecialTokens> around;  // what a model with this tokenizer expects

  bool empty() const { return !end && !begin && stops.empty() && !around; }
};

// The same tokenizer with these declarations, which to_json() includes. Formats that cannot store them (bytes, chars,
// SentencePiece) lose them when written.
std::unique_ptr<Tokenizer> with_declared(std::unique_ptr<Tokenizer> tokenizer, DeclaredTokens declared);

// The same tokenizer for a model whose texts all begin with `begin`; -1: returns the tokenizer itself.
std::unique_ptr<Tokenizer> with_begin_of_texts(std::unique_ptr<Tokenizer> tokenizer, int64_t begin);

// The declarations in a tokenizer.json; none without such a member.
DeclaredTokens declared_in(const base::Json& document);
// The text without them, as Hugging Face wrote it.
std::string without_declared(std::string_view json);

// A tokenizer.json whose post-processor prepends this token, spelled so, to each text, or none.
std::string with_begin(std::string_view json, std::optional<int32_t> begin, std::string_view spelled);

// Reads the declarations from the files next to the tokenizer of a Hugging Face folder: tokenizer_config.json,
// special_tokens_map.json, generation_config.json, config.json. Ignores absent files and tokens that the tokenizer
// lacks. `has_template`: tokenizer.json has a post-processor, which takes precedence over add_bos_token and
// add_eos_token.
DeclaredTokens declared_beside(const std::filesystem::path& folder, const Tokenizer& tokenizer, bool has_template);

// The id of the token with this spelling; nothing if there is none.
std::optional<int32_t> find_token(const Tokenizer& tokenizer, std::string_view spelled);

}  // namespace kintsugi::text
