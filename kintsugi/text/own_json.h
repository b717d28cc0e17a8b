// Common to the tokenizer.json files of our own kinds (bytes, chars): { "format": "kintsugi-tokenizer", "version": 1,
// "kind": ..., and the keys of the kind }.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"

namespace kintsugi::text {

constexpr std::string_view kOwnFormat = "kintsugi-tokenizer";
constexpr int32_t kOwnVersion = 1;

// The text that the end-of-text id decodes to, as in GPT-2; encoding this text does not produce that id.
constexpr std::string_view kOwnEndOfText = "<|endoftext|>";

// Writes the members common to all kinds.
void begin_own_json(base::JsonWriter& out, std::string_view kind);

// Throws UserError unless `document` has the format and version and, besides these, exactly the keys of `more`.
void check_keys(const base::Json& document, const std::vector<std::string>& more);
void check_number(const base::Json& document, std::string_view key, int32_t number);

}  // namespace kintsugi::text
