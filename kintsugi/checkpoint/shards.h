// The parts of a state that a rank holds, and those that it writes: boxes in the whole tensor, ranges of their
// elements, and their place in memory. Excludes padding.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kintsugi/checkpoint/box.h"
#include "kintsugi/program/program.h"

namespace kintsugi::checkpoint {

// The elements part.flat of part.box. The element with indices i in the box is at first + sum of i[d] * stride[d], in
// elements from the beginning of the state's buffer.
struct Shard {
  Part part;
  int64_t first = 0;
  std::vector<int64_t> stride;
};

// Everything that the rank holds of a state: one box, or several if a dim is split zigzag; boxes of two ranks are equal
// or disjoint. Empty if the rank holds only padding or another part of the bucket.
std::vector<Shard> shards_of(const program::Program& p, const program::StateInfo& s, int rank);

// Calls f(at, count) for the elements of the shard in order, in maximal runs that are contiguous in memory.
void for_each_span(const Shard& shard, const std::function<void(int64_t at, int64_t count)>& f);

// A part of states[state] that the rank writes.
struct Share {
  size_t state = 0;
  Shard shard;
};

// Assigns each element of each state to exactly one rank. Ranks that replicate elements divide them evenly: their
// common bytes form one sequence, of which each rank takes an equal contiguous share, so that few tensors are cut.
std::vector<Share> shares_of(const program::Program& p, const std::vector<const program::StateInfo*>& states, int rank);

}  // namespace kintsugi::checkpoint
