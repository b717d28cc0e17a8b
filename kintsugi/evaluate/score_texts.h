// Scores many texts of different lengths: batches texts of similar length, with a program for each of a few lengths.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/scorer.h"

namespace kintsugi::evaluate {

// Chooses ascending sequence lengths of programs for texts with `inputs` tokens to read: multiples of `unit`, the last
// at most `context`. Adds a length only if it saves more than 1/32 of all tokens, including padding.
std::vector<int64_t> choose_lengths(std::span<const int64_t> inputs, int64_t unit, int64_t context);

struct ScoringOptions {
  int64_t batch = 8;                                       // texts per batch, across all ranks
  std::function<void(int64_t)> progress = [](int64_t) {};  // called with the number of texts done
};

// Returns the scores of texts of at most the model's context + 1 ids, identical on every rank. Call collectively on all
// ranks.
std::vector<Score> score_texts(CheckpointModel& model, std::span<const ScoredText> texts,
                               const ScoringOptions& options);

}  // namespace kintsugi::evaluate
