// Staging of per-step inputs: the host copies all of them to the device at once, to an area after the arena, and the
// device copies each input to its buffer when a call needs it.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

struct Staging {
  std::vector<StagedInput> inputs;  // in call order
  int64_t bytes = 0;
};

// Bytes of the scalars, which come first.
inline constexpr int64_t kStagedNumbers = 256;

Staging staging(const Program& p, const CallList& list);

}  // namespace kintsugi::program
