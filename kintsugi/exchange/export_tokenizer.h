// Writes the tokenizer of a model in the format of Hugging Face folders.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "kintsugi/config/settings.h"
#include "kintsugi/exchange/config_json.h"

namespace kintsugi::exchange {

// Our own member of tokenizer_config.json: training samples began as texts do ([data] begin_samples).
inline constexpr std::string_view kBeginSamples = "begin_samples";

// The ids that begin and end texts of a model with this tokenizer (an empty `json`: none). Without a token that begins
// texts, the one that ends documents does, as in generation without a prompt.
TextIds text_ids(const std::string& json, const config::Settings& settings, bool made_elsewhere);

// Writes tokenizer.json (for SentencePiece: tokenizer.model), tokenizer_config.json and generation_config.json to the
// folder; without a tokenizer (an empty `json`) only the last. Returns a note if transformers cannot read the
// tokenizer, otherwise "". If training samples began with a token, so do texts there.
std::string export_tokenizer(const std::filesystem::path& folder, const std::string& json,
                             const config::Settings& settings, bool made_elsewhere);

}  // namespace kintsugi::exchange
