// When buffers of the arena live, along a straight list of instructions.
#pragma once

#include <functional>
#include <vector>

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// From the first to the last instruction that touches a buffer, or one that shares its memory.
struct Life {
  int begin = 1 << 30;
  int end = -1;

  bool overlaps(const Life& other) const { return begin <= other.end && other.begin <= end; }
};

using Line = std::vector<program::Instruction*>;

// By buffer; those of roots alone. An input lives from the beginning, an output until the end.
std::vector<Life> lives(const program::Program& p, const Line& line);

// Outputs take the memory of inputs that die, where the operation's row and `may`(from, to) allow it.
void share_in_place(program::Program& p, const Line& line, const graph::OpTable& operations,
                    const std::function<bool(program::BufferId from, program::BufferId to)>& may = {});

// The sum of what lives at each instruction: no packing is smaller than its largest.
std::vector<int64_t> sums(const program::Program& p, const std::vector<Life>& life, size_t length);

}  // namespace kintsugi::lower
