// The graph of what a model makes of samples: logits of classes, or numbers.
#pragma once

#include "kintsugi/models/step.h"

namespace kintsugi::models {

constexpr std::string_view kOutputs = "outputs";

// evaluate alone, with the output kOutputs [batch class], [batch target], or [batch spatial... class]. UserError for a
// model whose objective is of tokens.
Graphs build_outputs(const config::Settings& settings, int64_t batch, int64_t sequence);

}  // namespace kintsugi::models
