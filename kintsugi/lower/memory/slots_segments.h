// The segments of a list of calls, and the offsets of buffers in them.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/lower/memory/slots_liveness.h"

namespace kintsugi::lower {

// Buffers at fixed offsets from each other, in all calls and micro-batches. A call is cut into ticks, equal parts of
// its body's instructions: buffers carried from a late tick of one body, or to an early tick of another, share memory
// with buffers that are live in the other ticks of these calls.
struct Segment {
  int carried = -1;                              // index into ListLiveness::carried; -1: temporaries of one body
  int body = -1;                                 // for temporaries: index into ListLiveness::bodies
  int first_tick = 0, last_tick = 0;             // where it begins in its first call, and ends in its last
  std::vector<program::BufferId> buffers = {};   // if carried: in offset order
  std::vector<program::BufferId> in_holes = {};  // temporaries placed where carried buffers are not live
  int64_t bytes = 0;
};

struct Grain {
  int ticks = 1;          // per call
  bool by_layer = false;  // values of different layers are in different segments
};

struct Segments {
  struct Offset {
    int segment = -1;
    int64_t offset = -1;
  };
  Grain grain = {};
  std::vector<Segment> list = {};
  std::vector<Offset> offsets = {};  // [buffer], for roots that a body of the list touches
};

// Groups carried buffers into segments by the bodies that touch them and the ticks in which they begin and end;
// consecutively, in the order in which they are produced. A temporary is placed in the first segment that begins or
// ends with its body and has a hole for it, or in a segment of its body's temporaries; each at the lowest offset,
// largest first.
Segments make_segments(const program::Program& p, const ListLiveness& liveness, Grain grain);

}  // namespace kintsugi::lower
