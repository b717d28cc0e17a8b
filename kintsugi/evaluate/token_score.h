// The log-probability of a token by the logits before it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kintsugi::evaluate {

// A token with the log-probability that the model gives it after the tokens before it.
struct TokenScore {
  struct Alternative {
    int32_t id = 0;
    double log_probability = 0;
  };

  int32_t id = 0;
  std::optional<double> log_probability = {};  // nothing for the first of a text, and where none is asked for
  std::vector<Alternative> top = {};           // the most likely tokens there, the most likely first
};

// Scores a token by the logits [vocab] before it, with the `top` most likely ones. In double precision.
TokenScore score_token(std::span<const float> logits, int32_t id, int64_t top);

}  // namespace kintsugi::evaluate
