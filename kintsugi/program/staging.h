// How the host gives a rank on a device what changes from step to step: in one copy, to a place behind the arena, from
// which the device takes each input to its buffer when a call needs it.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

struct Staging {
  struct Input {
    size_t call = 0;  // in the list
    BufferId buffer = kNoBuffer;
    int64_t offset = 0;  // from the beginning of the place
  };
  std::vector<Input> inputs;  // in the order of calls
  int64_t bytes = 0;
};

// The numbers come first, in so many bytes.
inline constexpr int64_t kStagedNumbers = 256;

Staging staging(const Program& p, const CallList& list);

}  // namespace kintsugi::program
