// The two files in which GPT-2 was published, under either of their names.
#pragma once

#include <filesystem>
#include <memory>

#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// `vocabulary` is encoder.json or vocab.json, `merges` is vocab.bpe or merges.txt; also reads an added_tokens.json next
// to them. Throws UserError if one is absent or malformed.
std::unique_ptr<Tokenizer> read_bpe_files(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

}  // namespace kintsugi::text
