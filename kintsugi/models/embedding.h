// The graph of text embeddings: the hidden states of a model without its head.
#pragma once

#include "kintsugi/models/step.h"

namespace kintsugi::models {

constexpr std::string_view kHidden = "hidden";

// Builds only evaluate, with the output kHidden [batch seq embed]: the residual stream after `blocks` blocks, 0 being
// the embedding; or -1: what the head would read at each position, after the final norm. `batch` samples of `sequence`
// tokens; where attention is not causal, the input "starts" masks padding. Throws UserError for a model that does not
// read tokens.
Graphs build_embedding(const config::Settings& settings, int64_t batch, int64_t sequence, int64_t blocks = -1);

}  // namespace kintsugi::models
