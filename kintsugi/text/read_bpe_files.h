// The two files in which GPT-2 was published, under either of their names.
#pragma once

#include <filesystem>
#include <memory>

#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// `vocabulary` is encoder.json or vocab.json, `merges` is vocab.bpe or merges.txt; an added_tokens.json beside them is
// read too. UserError if one is absent or damaged.
std::unique_ptr<Tokenizer> read_bpe_files(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

}  // namespace kintsugi::text
