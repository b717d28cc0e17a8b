// Describes communicating instructions in words.
#pragma once

#include <string>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Its input, or its output if it has none.
BufferId value_of(const Instruction& i);

// all_reduce sum of #5 "x" into #6, 96 bytes of fp32, over data, ranks 0 2
// send of #5 "x", 96 bytes of fp32, over pipe, to rank 3
// fetch of #5 "x" into #6, 96 bytes of fp32, from the file
std::string describe(const Program& p, const Instruction& i, int rank);

// "0 1 2 3", "0 8 16 ... 4088 (512 ranks)"
std::string list_of(const std::vector<int>& ranks);

// "backward.last", "backward, micro-batch 1"
std::string describe(const Program& p, const Call& call);

}  // namespace kintsugi::program
