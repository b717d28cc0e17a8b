// Writes a byte-level BPE as a tokenizer.json for Hugging Face's library.
#pragma once

#include <string>

#include "kintsugi/text/bpe_tokenizer.h"

namespace kintsugi::text {

// For a definition with GPT-2's pattern and no normalization; throws InternalError for another.
std::string write_bpe_json(const BpeDefinition& definition);

}  // namespace kintsugi::text
