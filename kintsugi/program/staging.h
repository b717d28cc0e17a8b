// Staging of what changes from step to step: the host copies all of it to the device at once, to an area after the
// arena, and the device copies each input to its buffer when a call needs it.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

struct Staging {
  std::vector<StagedInput> inputs;  // in the order of calls
  int64_t bytes = 0;
};

// The bytes of the scalars, which come first.
inline constexpr int64_t kStagedNumbers = 256;

Staging staging(const Program& p, const CallList& list);

}  // namespace kintsugi::program
