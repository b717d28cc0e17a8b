// Reads Hugging Face's tokenizer.json, if it holds a byte-level BPE.
#pragma once

#include <memory>
#include <string_view>

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// Whether the parts of the document are those of byte-level BPE, and no others that change the ids.
bool is_byte_level_bpe(const base::Json& document);

// `document`, which is_byte_level_bpe, is the parsed `content`; `where` names it in errors. UserError if it is damaged;
// truncation and padding are ignored.
std::unique_ptr<Tokenizer> read_bpe_json(const base::Json& document, std::string_view content, std::string_view where);

}  // namespace kintsugi::text
