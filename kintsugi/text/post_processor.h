// The post-processor of tokenizer.json: the special tokens that it would add around a text.
#pragma once

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// For a document with or without a "post_processor". Throws UserError for an unknown type.
SpecialTokens read_post_processor(const base::Json& document);

}  // namespace kintsugi::text
