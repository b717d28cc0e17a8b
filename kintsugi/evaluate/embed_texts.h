// Embeddings of texts: the hidden states of the tokens, pooled to one vector per text.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kintsugi/evaluate/checkpoint_model.h"

namespace kintsugi::evaluate {

// mean: over the tokens of a text; last, first: the hidden state of its last or first token (the class token of an
// encoder).
enum class Pooling : uint8_t { mean, last, first };

struct EmbeddingOptions {
  Pooling pooling = Pooling::mean;
  int64_t blocks = -1;                                     // hidden states after that many; -1: after the final norm
  int64_t batch = 8;                                       // texts per batch, across all ranks
  std::function<void(int64_t)> progress = [](int64_t) {};  // called with the number of texts done
};

// Returns [text embed], row-major and identical on every rank. Call collectively on all ranks. Each text has at least
// one id and at most as many as the model has positions. Texts are batched by length, which changes a vector only by
// rounding.
std::vector<float> embed_texts(CheckpointModel& model, std::span<const std::vector<int32_t>> texts,
                               const EmbeddingOptions& options);

}  // namespace kintsugi::evaluate
