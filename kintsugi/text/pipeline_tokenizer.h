// A tokenizer of tokenizer.json: added tokens, normalizer, pre-tokenizer, model, in this order (Hugging Face's
// pipeline). Byte-level BPE is separate, in bpe_tokenizer.h.
#pragma once

#include <memory>
#include <string_view>

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// Produces the same ids as Hugging Face's library with the same file and no special tokens. Invalid UTF-8 becomes byte
// tokens or the unknown token. Throws UserError for an unsupported part and for malformed tables.
std::unique_ptr<Tokenizer> read_pipeline_json(const base::Json& document, std::string_view content,
                                              std::string_view where);

}  // namespace kintsugi::text
