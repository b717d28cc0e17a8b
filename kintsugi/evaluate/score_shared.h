// Scores texts that begin alike, such as the choices of a question, and reads what they share once: each text reuses
// the keys and values of the previous one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kintsugi/evaluate/score_texts.h"

namespace kintsugi::evaluate {

// Numbers of consecutive texts that differ only in their scored tokens.
std::vector<size_t> chains_of(std::span<const ScoredText> texts);

// Number of tokens that the model reads if each text reuses what it shares with the previous one.
int64_t tokens_read(std::span<const ScoredText> texts);

// As score_texts(). The layout must keep the tokens of a text on one rank (evaluate::require_whole_samples).
std::vector<Score> score_shared(CheckpointModel& model, std::span<const ScoredText> texts,
                                const ScoringOptions& options);

}  // namespace kintsugi::evaluate
