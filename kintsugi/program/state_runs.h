// Which elements of a state a rank has, and where.
#pragma once

#include <cstdint>
#include <functional>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// `count` neighbouring elements: from `at` on in the buffer of the state (or of its bucket), from `whole` on in the
// whole tensor, row-major.
struct Run {
  int64_t at = 0;
  int64_t whole = 0;
  int64_t count = 0;
};

// Calls f for each run that the rank has, in the order of the buffer; two that touch on both sides are one. Padding is
// left out.
void for_each_run(const Program& p, const StateInfo& s, int rank, const std::function<void(const Run&)>& f);

}  // namespace kintsugi::program
