// Writes a byte-level BPE as a tokenizer.json that Hugging Face's library can load.
#pragma once

#include <string>

#include "kintsugi/text/bpe_tokenizer.h"

namespace kintsugi::text {

// For a definition with GPT-2's pattern and no normal form; InternalError for another.
std::string write_bpe_json(const BpeDefinition& definition);

}  // namespace kintsugi::text
