// The post-processor of tokenizer.json: which special tokens it would add around a text.
#pragma once

#include "kintsugi/base/json.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// Of a document with a "post_processor", or without. UserError for a type that is not known.
SpecialTokens read_post_processor(const base::Json& document);

}  // namespace kintsugi::text
