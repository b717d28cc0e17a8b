// The parts of a state that a rank holds, and those that it writes: boxes in the whole tensor, ranges of their
// elements, and where these are in memory. Padding is excluded.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kintsugi/checkpoint/box.h"
#include "kintsugi/program/program.h"

namespace kintsugi::checkpoint {

// Of part.box, the elements part.flat. The one with indices i in the box is at first + sum of i[d] * stride[d],
// counted in elements from the beginning of the state's buffer.
struct Shard {
  Part part;
  int64_t first = 0;
  std::vector<int64_t> stride;
};

// All that the rank holds of a state. One box, or several if a dim is split zigzag; the boxes of two ranks are equal
// or disjoint. None if all is padding, or in another rank's part of the bucket.
std::vector<Shard> shards_of(const program::Program& p, const program::StateInfo& s, int rank);

// Calls f(at, count) for the elements of the shard in order, in the longest runs that are contiguous in memory.
void for_each_span(const Shard& shard, const std::function<void(int64_t at, int64_t count)>& f);

// The parts of states[state] that the rank writes.
struct Share {
  size_t state = 0;
  Shard shard;
};

// Each element of each state is in the share of exactly one rank. Ranks that hold the same elements divide them
// evenly: all their common bytes are taken as one sequence, of which each rank takes an equal stretch, so that few
// tensors are cut.
std::vector<Share> shares_of(const program::Program& p, const std::vector<const program::StateInfo*>& states, int rank);

}  // namespace kintsugi::checkpoint
