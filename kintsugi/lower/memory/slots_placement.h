// Start of segments in the arena, call by call: three methods, of which the smallest result is used. Independent of
// programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kintsugi/lower/memory/pack.h"

namespace kintsugi::lower {

// The carried buffers of one micro-batch: live from one call to another, and within these from or to a tick.
struct Instance {
  int64_t bytes = 0;
  Interval calls;
  Interval ticks;  // counted over all calls
};

// The temporaries of one body, live during each of its calls.
struct Temporaries {
  int64_t bytes = 0;
  std::vector<int> calls;  // ascending
};

struct ArenaDemand {
  int ticks = 1;  // per call
  std::vector<Instance> instances;
  std::vector<Temporaries> temporaries;
  int64_t enough = 0;  // a placement of that many bytes need not be improved
};

enum class PlacementMethod { stacked, packed, beside };
std::string_view name_of(PlacementMethod method);

// Items that are live in the same tick do not overlap.
struct Placement {
  PlacementMethod method = PlacementMethod::stacked;
  std::vector<int64_t> instances;                 // offset of each
  std::vector<std::vector<int64_t>> temporaries;  // offsets, in each of their calls
  int64_t bytes = 0;                              // end of the highest
};

// Instances largest first, tick by tick, each as low as possible: those of equal size reuse the same offsets.
// Temporaries in each call as low as the instances allow.
Placement place_stacked(const ArenaDemand& demand);

// pack() of instances, tick by tick, together with temporaries: those of a body have one offset in all calls.
Placement place_packed(const ArenaDemand& demand);

// pack() of instances, tick by tick; then temporaries in each call as low as the instances allow.
Placement place_beside(const ArenaDemand& demand);

// The smallest of the three; ties go to the first. With more than kFewInstances instances, or if it is small enough,
// `stacked`: equally good then, and much faster.
Placement place(const ArenaDemand& demand);
constexpr size_t kFewInstances = 600;

}  // namespace kintsugi::lower
