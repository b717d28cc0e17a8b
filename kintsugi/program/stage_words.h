// Words for the tables about stages that `plan` prints and a report shows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/program/memory_table.h"

namespace kintsugi::program {

// A column of a table of memory. Those without `always` are left out if no stage has any. States persist from step to
// step.
struct MemoryPart {
  std::string_view name;
  int64_t MemoryTable::*bytes;
  bool state = false, always = true;
};
std::span<const MemoryPart> memory_parts();  // together they are the total
// "weights 1.2 MiB, gradients ...": those that are not nothing, in one line.
std::string parts_in_words(const MemoryTable& table);

// "embedding, layers 0-3 8-11, head": of ModelShare, for a model of so many layers.
std::string layers_in_words(const std::vector<int>& layers, int64_t all);

// Those that run this program, in ascending order.
std::vector<int> ranks_of(const Program& p);

}  // namespace kintsugi::program
