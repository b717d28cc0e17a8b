// Wording of the tables about stages that `plan` prints and reports show.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/program/memory_table.h"

namespace kintsugi::program {

// A column of a memory table. Those without `always` are omitted if no stage has any. `state`: persists from step to
// step.
struct MemoryPart {
  std::string_view name;
  int64_t MemoryTable::*bytes;
  bool state = false, always = true;
};
std::span<const MemoryPart> memory_parts();  // together they make up the total
// "weights 1.2 MiB, gradients ...": the nonzero parts, in one line.
std::string parts_in_words(const MemoryTable& table);

// "embedding, layers 0-3 8-11, head": the layers of a ModelShare, for a model of `all` layers.
std::string layers_in_words(const std::vector<int>& layers, int64_t all);

// The ranks that run this program, ascending.
std::vector<int> ranks_of(const Program& p);

}  // namespace kintsugi::program
