// Texts sampled from the model during training.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/train/metrics.h"
#include "kintsugi/train/rank.h"

namespace kintsugi::train {

// Continues [train] prompts with the current weights, as `generate` does by default. Collective. `goes_on` is as in
// evaluate::continue_texts(); returns nothing if it says no.
std::optional<std::vector<SampledText>> sample_texts(Rank& rank, const std::function<bool(int64_t, int64_t)>& goes_on);

// Throws UserError if [train] requests sampling and there is no tokenizer next to the data.
void require_tokenizer_of_samples(const config::Settings& settings, const std::string& tokenizer_json);

// The text with invalid UTF-8 and NULs replaced by the replacement character, for JSON.
std::string as_utf8(std::string_view text);

}  // namespace kintsugi::train
