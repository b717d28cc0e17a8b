// The tokenizer of a model as Hugging Face's folders have it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "kintsugi/config/settings.h"

namespace kintsugi::exchange {

// A member of tokenizer_config.json of our own, that the samples of the training began as texts do: [data]
// begin_samples.
inline constexpr std::string_view kBeginSamples = "begin_samples";

// Writes tokenizer.json (of SentencePiece: tokenizer.model), tokenizer_config.json and generation_config.json into the
// folder; without a tokenizer (an empty `json`) only the last. Returns a note where transformers cannot read the
// tokenizer, else "". Where samples of the training began with a token, so do texts there.
std::string export_tokenizer(const std::filesystem::path& folder, const std::string& json,
                             const config::Settings& settings, bool made_elsewhere);

}  // namespace kintsugi::exchange
