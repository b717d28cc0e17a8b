// Reads a byte-level BPE from Hugging Face's tokenizer.json.
#pragma once

#include <memory>
#include <string_view>

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// Whether the document consists of the parts of byte-level BPE and no others that change the ids.
bool is_byte_level_bpe(const base::Json& document);

// `document`, which is_byte_level_bpe, is the parsed `content`; `where` names it in errors. Throws UserError if it is
// malformed; ignores truncation and padding.
std::unique_ptr<Tokenizer> read_bpe_json(const base::Json& document, std::string_view content, std::string_view where);

}  // namespace kintsugi::text
