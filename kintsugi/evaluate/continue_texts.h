// Continues texts with the list `sample` of a training program, using the weights between two steps.
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
  int64_t length = 0;               // maximum number of tokens
  int64_t window = 0;               // tokens of each text that the list reads
  std::optional<int32_t> end = {};  // the id that ends a text
  SampleOptions sample = {};
};

// Returns the ids that follow each (nonempty) prompt, without the end id, on every rank. A pass makes one token per
// text from the last `window` tokens of each; where prompts differ in length, the excess of the longer ones is read
// rather than sampled. Each text samples from a stream of its own, by its index. Calls goes_on(passes done, maximum
// passes) before each pass, which must return the same on all ranks; returns nothing if it returns false.
std::optional<std::vector<std::vector<int32_t>>> continue_texts(run::Executor& executor, comm::Communicator& all,
                                                                std::span<const std::vector<int32_t>> prompts,
                                                                const Continuation& how,
                                                                const std::function<bool(int64_t, int64_t)>& goes_on);

}  // namespace kintsugi::evaluate
