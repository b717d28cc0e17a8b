// Each byte is an id.
#pragma once

#include <memory>
#include <string_view>

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// Ids 0 to 255 are the bytes; 256 ends a text.
std::unique_ptr<Tokenizer> make_bytes_tokenizer();

std::unique_ptr<Tokenizer> read_bytes_json(const base::Json& document);

}  // namespace kintsugi::text
