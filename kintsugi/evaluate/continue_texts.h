// Continues texts with a training program, using the weights between two steps: with the lists `prefill` and `decode`,
// or where ranks may split the tokens of a text with the list `sample`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/evaluate/draw.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

struct Continuation {
  int64_t length = 0;              // maximum number of tokens
  int64_t window = 0;              // tokens of each text that the list `sample` reads
  std::vector<int32_t> ends = {};  // ids that end a text
  SampleOptions sample = {};
  uint64_t first_stream = 0;  // of the first text
  bool scored = false;        // with log-probabilities
};

struct Continued {
  std::vector<int32_t> ids;              // without the end id
  std::optional<int32_t> end;            // the end id, if the text ended with one
  std::vector<float> log_probabilities;  // if scored: of the ids and the end id, in the model's distribution
};

// Returns what follows each (nonempty) prompt, on every rank. A pass makes one token per
// text, by `sample` from the last `window` tokens of each; where prompts differ in length, the excess of the longer
// ones is read rather than sampled. Each text samples from a stream of its own, by its index from `first_stream` on.
// Calls goes_on(passes done, maximum passes) before each pass, which must return the same on all ranks; returns nothing
// if it returns false.
std::optional<std::vector<Continued>> continue_texts(run::Executor& executor, comm::Communicator& all,
                                                     std::span<const std::vector<int32_t>> prompts,
                                                     const Continuation& how,
                                                     const std::function<bool(int64_t, int64_t)>& goes_on);

}  // namespace kintsugi::evaluate
