// API answers, as JSON or as an event stream, from the generated texts.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/serve/choice.h"
#include "kintsugi/serve/http.h"

namespace kintsugi::serve {

// The contents of an answer.
struct AnswerParts {
  bool chat = false;
  std::string id, model;
  int64_t created = 0;  // seconds since 1970
  std::vector<std::shared_ptr<Choice>> choices;
  std::vector<std::string> echoes;  // each choice's prompt text, if it is part of the answer
  bool log_probabilities = false;
  bool streams = false, includes_usage = false;
  int64_t prompt_tokens = 0;
  std::chrono::steady_clock::time_point deadline;
};

// How an answer ended, for statistics.
struct AnswerEnd {
  enum Way { whole, cancelled, failed } way = whole;
  int64_t tokens = 0;  // generated
};

// The body of an answer. Calls `ended` once. The tokenizer must outlive it.
std::shared_ptr<BodySource> make_answer(AnswerParts parts, const text::Tokenizer& tokenizer,
                                        std::function<void(const AnswerEnd&)> ended);

}  // namespace kintsugi::serve
