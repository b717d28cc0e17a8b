// Scores of many texts of different lengths: in batches of similar lengths, by a program for each of a few lengths.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/scorer.h"

namespace kintsugi::evaluate {

// Lengths of programs, ascending, for texts of which `inputs` are the tokens read of each: multiples of `unit`, the
// last at most `context`. So few that each saves more than 1/32 of all tokens, padding included.
std::vector<int64_t> choose_lengths(std::span<const int64_t> inputs, int64_t unit, int64_t context);

struct ScoringOptions {
  int64_t batch = 8;                                       // texts at a time, of all ranks together
  std::function<void(int64_t)> progress = [](int64_t) {};  // told how many texts are done
};

// The scores of texts of at most the model's context + 1 ids, the same on every rank; all ranks call it together.
std::vector<Score> score_texts(CheckpointModel& model, std::span<const ScoredText> texts,
                               const ScoringOptions& options);

}  // namespace kintsugi::evaluate
