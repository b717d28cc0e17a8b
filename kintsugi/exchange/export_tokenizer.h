// The tokenizer of a model as Hugging Face's folders have it.
#pragma once

#include <filesystem>
#include <string>

#include "kintsugi/config/settings.h"

namespace kintsugi::exchange {

// Writes tokenizer.json (of SentencePiece: tokenizer.model), tokenizer_config.json and generation_config.json into the
// folder; without a tokenizer (an empty `json`) only the last. Returns a note where transformers cannot read the
// tokenizer, else "".
std::string export_tokenizer(const std::filesystem::path& folder, const std::string& json, const config::Model& model,
                             bool made_elsewhere);

}  // namespace kintsugi::exchange
