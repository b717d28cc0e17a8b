// What is said beside a tokenizer of the tokens around texts: which of them end a document, which begin one, which end
// a generated text. It travels in tokenizer.json, as the member "kintsugi" of its "model", which other programs pass
// over.
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

// Absent: as the tokenizer itself has it.
struct DeclaredTokens {
  std::optional<int32_t> end;           // ends a document
  std::optional<int32_t> begin;         // the documents of a corpus begin with it
  std::vector<int32_t> stops = {};      // each ends a generated text
  std::optional<SpecialTokens> around;  // what a model of this tokenizer expects

  bool empty() const { return !end && !begin && stops.empty() && !around; }
};

// The same tokenizer with these declarations, which its to_json() has too. Of one whose form has no place for them
// (bytes, chars, SentencePiece) they are lost when it is written.
std::unique_ptr<Tokenizer> with_declared(std::unique_ptr<Tokenizer> tokenizer, DeclaredTokens declared);

// The same tokenizer for a model whose texts all begin with `begin`; -1: the tokenizer itself.
std::unique_ptr<Tokenizer> with_begin_of_texts(std::unique_ptr<Tokenizer> tokenizer, int64_t begin);

// The declarations of a tokenizer.json; none if it has no such member.
DeclaredTokens declared_in(const base::Json& document);
// The text without them, as Hugging Face wrote it.
std::string without_declared(std::string_view json);

// The text of a tokenizer.json whose post-processor puts this token, spelled so, before each text, or none.
std::string with_begin(std::string_view json, std::optional<int32_t> begin, std::string_view spelled);

// What the files beside the tokenizer of a Hugging Face folder say: tokenizer_config.json, special_tokens_map.json,
// generation_config.json, config.json. Files that are absent, and tokens that the tokenizer lacks, say nothing.
// `has_template`: tokenizer.json has a post-processor, which goes before add_bos_token and add_eos_token.
DeclaredTokens declared_beside(const std::filesystem::path& folder, const Tokenizer& tokenizer, bool has_template);

// The id of the token that is spelled so; nothing if there is none.
std::optional<int32_t> find_token(const Tokenizer& tokenizer, std::string_view spelled);

}  // namespace kintsugi::text
