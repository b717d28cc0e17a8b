// Texts that are continued by the list `sample` of a training program: by the weights as they are between two steps.
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
  int64_t length = 0;               // tokens at most
  int64_t window = 0;               // tokens that the list reads of each text
  std::optional<int32_t> end = {};  // the id that ends a text
  SampleOptions sample = {};
};

// The ids that follow each prompt (none is empty), the end left out, on every rank. One pass makes a token of each
// text: it reads the last `window` tokens of all, and what one text has more than another at the beginning is read, not
// drawn. Each text draws from a stream of its own, by its place. Before each pass goes_on(passes done, passes at most),
// which all ranks answer alike; nothing if it says no.
std::optional<std::vector<std::vector<int32_t>>> continue_texts(run::Executor& executor, comm::Communicator& all,
                                                                std::span<const std::vector<int32_t>> prompts,
                                                                const Continuation& how,
                                                                const std::function<bool(int64_t, int64_t)>& goes_on);

}  // namespace kintsugi::evaluate
