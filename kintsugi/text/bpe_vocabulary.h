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

// Which ids added tokens have: those that the file gives them, or those that Hugging Face's tokenizers do.
enum class AddedIds : uint8_t { as_given, numbered };

// Sets the model of `definition`, whose `added` must be set already. `vocabulary` is an object of spelled tokens and
// ids, which may have gaps. Of a merge that is there twice, the last counts. UserError if a table is damaged, two
// tokens have one id, or the tables do not match.
void set_vocabulary(BpeDefinition& definition, const base::Json& vocabulary, const std::vector<SpelledMerge>& merges,
                    AddedIds added_ids);

// The largest id that is read of so many tokens: it bounds the memory of a table by id.
size_t largest_id(size_t num_tokens);

// The id of a token, from 0 on.
int32_t read_id(const base::Json& value);

}  // namespace kintsugi::text
