// Texts and tokens as JSON can hold them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kintsugi/text/tokenizer.h"

namespace kintsugi::serve {

// `text` with U+FFFD for bytes that are not UTF-8.
std::string valid_text(std::string_view text);

// The bytes of a token after another (nothing: at the beginning of a text). "<id 7>" for an id that the tokenizer does
// not have, of which the model's table may have some.
std::string token_bytes(const text::Tokenizer& tokenizer, std::optional<int32_t> before, int32_t id);

// The same as the API writes it: bytes that are not UTF-8 as "bytes:\xe2\x80", so that different tokens differ.
std::string token_text(std::string_view bytes);

int64_t num_characters(std::string_view bytes);

}  // namespace kintsugi::serve
