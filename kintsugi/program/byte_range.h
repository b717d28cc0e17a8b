// The bytes that a buffer may have on any rank that runs its program.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// The base of a byte offset: a region; a segment of the arena, whose beginning depends on the call; or a root alone,
// if it has no offset.
enum class Space : uint8_t { state, arena, file, segment, root };

struct ByteRange {
  Space space = Space::arena;
  int number = 0;  // of the segment or the root
  int64_t begin = 0, end = 0;

  bool overlaps(const ByteRange& other) const {
    return space == other.space && number == other.number && begin < other.end && other.begin < end;
  }
};

// By buffer. A part counts as the whole that it is part of.
std::vector<ByteRange> byte_ranges(const Program& p);

// The same bytes in a call of that slot, if the segment has a place in the arena.
ByteRange in_slot(ByteRange range, const CallList& list, int slot);

}  // namespace kintsugi::program
