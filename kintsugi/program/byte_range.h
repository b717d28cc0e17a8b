// Which bytes a buffer may have on any rank that has its program.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// What bytes are counted in: a region; a segment of the arena, whose beginning depends on the call; a root alone, where
// it has no offset.
enum class Space : uint8_t { state, arena, file, segment, root };

struct ByteRange {
  Space space = Space::arena;
  int number = 0;  // of the segment or the root
  int64_t begin = 0, end = 0;

  bool overlaps(const ByteRange& other) const {
    return space == other.space && number == other.number && begin < other.end && other.begin < end;
  }
};

// By buffer. A part counts as the whole of what it is of.
std::vector<ByteRange> byte_ranges(const Program& p);

// The same bytes in a call of that slot, where a segment has a place in the arena.
ByteRange in_slot(ByteRange range, const CallList& list, int slot);

}  // namespace kintsugi::program
