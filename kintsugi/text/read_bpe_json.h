// Hugging Face's tokenizer.json, where it holds a byte-level BPE.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// `document` is what `content` holds; `where` names it in errors. What would change the ids and is not known here (a
// pre-tokenizer, a normalizer, dropout) is a UserError; a post-processor, truncation and padding are passed over.
std::unique_ptr<Tokenizer> read_bpe_json(const nlohmann::json& document, std::string_view content,
                                         std::string_view where);

}  // namespace kintsugi::text
