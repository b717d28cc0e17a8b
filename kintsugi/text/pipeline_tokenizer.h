// A tokenizer of tokenizer.json: added tokens, normalizer, pre-tokenizer, model, in this order (Hugging Face's
// pipeline). Byte-level BPE has a form of its own, bpe_tokenizer.h.
#pragma once

#include <memory>
#include <string_view>

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// The tokenizer gives the same ids as Hugging Face's library with the same file and no special tokens. Bytes that are
// not UTF-8 become byte tokens or the unknown token. UserError for a part that is not supported, and for damaged
// tables.
std::unique_ptr<Tokenizer> read_pipeline_json(const base::Json& document, std::string_view content,
                                              std::string_view where);

}  // namespace kintsugi::text
