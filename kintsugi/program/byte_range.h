// The byte ranges that a buffer may occupy on any rank of its program.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// The base of an offset: a region; a segment of the arena, whose start depends on the call; or a root that has no
// offset.
enum class Space : uint8_t { state, arena, file, segment, root };

struct ByteRange {
  Space space = Space::arena;
  int number = 0;  // of the segment or root
  int64_t begin = 0, end = 0;

  bool overlaps(const ByteRange& other) const {
    return space == other.space && number == other.number && begin < other.end && other.begin < end;
  }
};

// [buffer]. A part is treated as its whole.
std::vector<ByteRange> byte_ranges(const Program& p);

// The same bytes in a call with that slot, if the segment is placed in the arena.
ByteRange in_slot(ByteRange range, const CallList& list, int slot);

}  // namespace kintsugi::program
