// First-fit placement: the lowest free offset among blocks that are already placed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kintsugi/lower/memory/live_ranges.h"

namespace kintsugi::lower {

// Bytes occupied during a live range: along one list of instructions or calls, or along each of several.
template <typename Live>
struct Block {
  int64_t offset = 0, bytes = 0;
  Live live;
};

inline bool overlap(const LiveRange& a, const LiveRange& b) {
  return a.overlaps(b);
}

inline bool overlap(const std::vector<LiveRange>& a, const std::vector<LiveRange>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].overlaps(b[i])) return true;
  return false;
}

// The lowest offset at which that many bytes fit among the blocks live at the same time. Blocks must be sorted by
// offset.
template <typename Live>
int64_t lowest_offset(const std::vector<Block<Live>>& blocks, const std::type_identity_t<Live>& live, int64_t bytes) {
  int64_t offset = 0;
  for (const Block<Live>& other : blocks) {
    if (!overlap(other.live, live)) continue;
    if (other.offset >= offset + bytes) break;
    offset = std::max(offset, other.offset + other.bytes);
  }
  return offset;
}

// Keeps blocks sorted by offset.
template <typename Live>
void insert_block(std::vector<Block<Live>>& blocks, const std::type_identity_t<Block<Live>>& block) {
  const auto behind = std::upper_bound(blocks.begin(), blocks.end(), block,
                                       [](const auto& a, const auto& b) { return a.offset < b.offset; });
  blocks.insert(behind, block);
}

}  // namespace kintsugi::lower
