// Texts and tokens representable in JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kintsugi/text/tokenizer.h"

namespace kintsugi::serve {

// Replaces invalid UTF-8 in `text` by U+FFFD.
std::string valid_text(std::string_view text);

// The bytes of a token after another (nothing: at the beginning of a text). "<id 7>" for an id that the tokenizer
// lacks, as the model's table may be larger.
std::string token_bytes(const text::Tokenizer& tokenizer, std::optional<int32_t> before, int32_t id);

// The same in the API's notation: invalid UTF-8 as "bytes:\xe2\x80", so that distinct tokens remain distinct.
std::string token_text(std::string_view bytes);

int64_t num_characters(std::string_view bytes);

}  // namespace kintsugi::serve
