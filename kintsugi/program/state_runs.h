// The elements of a state that a rank holds, and their positions.
#pragma once

#include <cstdint>
#include <functional>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// `count` consecutive elements: from `at` in the buffer of the state (or its bucket), and from `whole` in the row-major
// whole tensor.
struct Run {
  int64_t at = 0;
  int64_t whole = 0;
  int64_t count = 0;
};

// Calls f for each run that the rank holds, in buffer order; merges runs that are adjacent on both sides. Skips
// padding.
void for_each_run(const Program& p, const StateInfo& s, int rank, const std::function<void(const Run&)>& f);

}  // namespace kintsugi::program
