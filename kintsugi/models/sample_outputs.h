// The graph of a model's outputs per sample or pixel: class logits or numbers.
#pragma once

#include "kintsugi/models/step.h"

namespace kintsugi::models {

constexpr std::string_view kOutputs = "outputs";

// Builds only evaluate, with the output kOutputs [batch spatial... class] or [batch spatial... target]. Throws
// UserError for a model with a token objective.
Graphs build_outputs(const config::Settings& settings, int64_t batch, int64_t sequence);

}  // namespace kintsugi::models
