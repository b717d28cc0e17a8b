// Reads Hugging Face's tokenizer.json, if it holds a byte-level BPE.
#pragma once

#include <memory>
#include <string_view>

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// `document` is the parsed `content`; `where` names it in errors. Unsupported parts that would change the ids (a
// pre-tokenizer, a normalizer, dropout) are a UserError; a post-processor, truncation and padding are ignored.
std::unique_ptr<Tokenizer> read_bpe_json(const base::Json& document, std::string_view content, std::string_view where);

}  // namespace kintsugi::text
