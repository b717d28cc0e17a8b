// What the model writes while it is trained.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/train/metrics.h"
#include "kintsugi/train/rank.h"

namespace kintsugi::train {

// [train] prompts, continued by the weights as they are, as `generate` would with its own defaults. All ranks call
// together. `goes_on` as in evaluate::continue_texts; nothing if it says no.
std::optional<std::vector<SampledText>> sample_texts(Rank& rank, const std::function<bool(int64_t, int64_t)>& goes_on);

// UserError if [train] asks for texts and there is no tokenizer beside the data.
void require_tokenizer_of_samples(const config::Settings& settings, const std::string& tokenizer_json);

}  // namespace kintsugi::train
