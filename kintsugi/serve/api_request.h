// Parses API requests from JSON. Rejects, rather than ignores, what is unsupported.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kintsugi/base/json.h"

namespace kintsugi::serve {

// Sampling parameters and limits of length, common to all kinds of requests.
struct Sampling {
  std::optional<int64_t> max_tokens;
  double temperature = 1, top_p = 1, min_p = 0;
  int64_t top_k = 0;  // 0: all
  double repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  std::vector<std::pair<int32_t, double>> logit_bias;
  std::optional<uint64_t> seed;
  std::vector<std::string> stops;
  int64_t choices = 1;  // texts per prompt
  int64_t top = -1;     // log-probabilities with this many alternatives; -1: none
  bool streams = false, includes_usage = false;
};

using Ids = std::vector<int32_t>;

struct CompletionRequest {
  std::string model;
  std::vector<std::variant<std::string, Ids>> prompts;  // at least one
  bool echo = false;
  Sampling sampling;
};

struct ChatMessage {
  std::string role, content;
};
struct ChatRequest {
  std::string model;
  std::vector<ChatMessage> messages;
  Sampling sampling;
};

struct ApiLimits {
  int64_t choices = 128;  // per request, over all prompts
  int64_t top = 20;       // alternatives per token
  size_t stops = 16;
  size_t biases = 1024;  // ids with a logit_bias
};

// Throws ApiError with status 400, naming the invalid member.
CompletionRequest parse_completion(std::string_view body, const ApiLimits& limits);
ChatRequest parse_chat(std::string_view body, const ApiLimits& limits);

// Parses a body that must be a JSON object; otherwise throws ApiError.
base::Json parse_object(std::string_view body);
// Parses token ids; otherwise throws ApiError.
Ids parse_ids(const base::Json& list, std::string_view param);

}  // namespace kintsugi::serve
