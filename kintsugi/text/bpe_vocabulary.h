// The two tables common to all published forms of byte-level BPE: token to id, and the list of merges.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kintsugi/base/json.h"
#include "kintsugi/text/bpe_tokenizer.h"

namespace kintsugi::text {

// Two tokens as spelled in the file (see byte_symbols.h).
using SpelledMerge = std::pair<std::string, std::string>;

// Splits "left right"; UserError states the `number` of the merge, from 1.
SpelledMerge read_merge(std::string_view line, size_t number, std::string_view where);

// ["left right", ...] or, since tokenizers 0.20, [["left", "right"], ...].
std::vector<SpelledMerge> read_merges(const base::Json& list, std::string_view where);

// Whether added tokens have the ids in the file, or those that Hugging Face's tokenizers assign.
enum class AddedIds : uint8_t { as_given, numbered };

// Sets the model of `definition`, whose `added` must already be set. `vocabulary` is an object of spelled tokens and
// ids, possibly with gaps. Of duplicate merges, the last counts. Throws UserError if a table is malformed, two tokens
// share an id, or the tables do not match.
void set_vocabulary(BpeDefinition& definition, const base::Json& vocabulary, const std::vector<SpelledMerge>& merges,
                    AddedIds added_ids);

// The largest id accepted for this number of tokens: bounds the memory of a table by id.
size_t largest_id(size_t num_tokens);

// Reads a token id, from 0.
int32_t read_id(const base::Json& value);

}  // namespace kintsugi::text
