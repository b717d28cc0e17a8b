// Embeddings of texts: the hidden states of their tokens, pooled to one vector for each text.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kintsugi/evaluate/checkpoint_model.h"

namespace kintsugi::evaluate {

// mean: over the tokens of a text; last, first: that of its last or first token (the class token of an encoder).
enum class Pooling : uint8_t { mean, last, first };

struct EmbeddingOptions {
  Pooling pooling = Pooling::mean;
  int64_t batch = 8;                                       // texts at a time, of all ranks together
  std::function<void(int64_t)> progress = [](int64_t) {};  // called with the number of texts that are done
};

// [text embed], row-major, the same on every rank; all ranks call it together. A text has at least one id, and at most
// as many as the model has positions. Texts are batched by length, which does not change a vector but for rounding.
std::vector<float> embed_texts(CheckpointModel& model, std::span<const std::vector<int32_t>> texts,
                               const EmbeddingOptions& options);

}  // namespace kintsugi::evaluate
