// The two tables that every published form of a byte-level BPE has: token to id, and the list of merges.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kintsugi/base/json.h"
#include "kintsugi/text/bpe_tokenizer.h"

namespace kintsugi::text {

// Two tokens as they are spelled in the file (see byte_symbols.h).
using SpelledMerge = std::pair<std::string, std::string>;

// Splits "left right"; UserError names the `number` of the merge, from 1 on.
SpelledMerge read_merge(std::string_view line, size_t number, std::string_view where);

// ["left right", ...] or, since tokenizers 0.20, [["left", "right"], ...].
std::vector<SpelledMerge> read_merges(const base::Json& list, std::string_view where);

// Sets the model of `definition`, whose `added` must be set already. `vocabulary` is an object of spelled tokens and
// ids. UserError if a table is damaged or the two do not match.
void set_vocabulary(BpeDefinition& definition, const base::Json& vocabulary, const std::vector<SpelledMerge>& merges);

// The id of a token, from 0 on.
int32_t read_id(const base::Json& value);

}  // namespace kintsugi::text
