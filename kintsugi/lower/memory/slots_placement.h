// Where segments begin in the arena, call by call: three methods, of which the smallest result is taken. Knows nothing
// of programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kintsugi/lower/memory/pack.h"

namespace kintsugi::lower {

// The carried buffers of one micro-batch: live from one call to another, in both of them from or to a tick.
struct Instance {
  int64_t bytes = 0;
  Interval calls;
  Interval ticks;  // counted through all calls
};

// The temporaries of one body, which are live during each of its calls.
struct Temporaries {
  int64_t bytes = 0;
  std::vector<int> calls;  // ascending
};

struct ArenaDemand {
  int ticks = 1;  // of a call
  std::vector<Instance> instances;
  std::vector<Temporaries> temporaries;
  int64_t enough = 0;  // a placement of so many bytes need not be smaller
};

enum class PlacementMethod { stacked, packed, beside };
std::string_view name_of(PlacementMethod method);

// Two that are live in one tick have no byte in common.
struct Placement {
  PlacementMethod method = PlacementMethod::stacked;
  std::vector<int64_t> instances;                 // offsets
  std::vector<std::vector<int64_t>> temporaries;  // offsets, in each of their calls
  int64_t bytes = 0;                              // where the highest ends
};

// Instances largest first, tick by tick, each as low as possible: those of one size follow each other at the same
// offsets. Temporaries in each call as low as the instances allow.
Placement place_stacked(const ArenaDemand& demand);

// By pack(), instances tick by tick and temporaries together: those of a body have one offset in all calls.
Placement place_packed(const ArenaDemand& demand);

// Instances by pack(), tick by tick; then temporaries in each call as low as the instances allow.
Placement place_beside(const ArenaDemand& demand);

// The smallest of the three; of equals the first. If there are more instances than kFewInstances, or it is small
// enough, `stacked`: as good then, and computed much faster.
Placement place(const ArenaDemand& demand);
constexpr size_t kFewInstances = 600;

}  // namespace kintsugi::lower
