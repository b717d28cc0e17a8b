// What a rank holds of a state, and what it writes of it: boxes in the whole tensor, ranges of their elements, and
// where these stand in memory. Padding is in none of them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kintsugi/checkpoint/box.h"
#include "kintsugi/program/program.h"

namespace kintsugi::checkpoint {

// Of part.box, the elements part.flat. The one with indices i in the box stands at first + sum of i[d] * stride[d],
// counted in elements from the beginning of the state's buffer.
struct Shard {
  Part part;
  int64_t first = 0;
  std::vector<int64_t> stride;
};

// All that the rank holds of a state. One box, or several where a dim is cut zigzag; the boxes of two ranks are equal
// or disjoint. None where all is padding, or in another rank's part of the bucket.
std::vector<Shard> shards_of(const program::Program& p, const program::StateInfo& s, int rank);

// Calls f(at, count) for the elements of the shard in order, in the longest runs that neighbour in memory.
void for_each_span(const Shard& shard, const std::function<void(int64_t at, int64_t count)>& f);

// What the rank writes of states[state].
struct Share {
  size_t state = 0;
  Shard shard;
};

// Each element of each state is in the share of one rank. Ranks that hold the same divide it evenly: all that they hold
// alike is one line of bytes, of which each takes as much, so that few tensors are cut.
std::vector<Share> shares_of(const program::Program& p, const std::vector<const program::StateInfo*>& states, int rank);

}  // namespace kintsugi::checkpoint
