// The log-probability of a token given the logits before it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kintsugi::evaluate {

// A token and its log-probability given the preceding tokens.
struct TokenScore {
  struct Alternative {
    int32_t id = 0;
    double log_probability = 0;
  };

  int32_t id = 0;
  std::optional<double> log_probability = {};  // nothing for the first token of a text, and if not requested
  std::vector<Alternative> top = {};           // the most likely tokens at that position, in descending order
};

// Scores a token given the logits [vocab] before it, with the `top` most likely tokens. Computes in double precision.
TokenScore score_token(std::span<const float> logits, int32_t id, int64_t top);

}  // namespace kintsugi::evaluate
