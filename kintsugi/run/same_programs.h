// Checks the programs that the ranks of a run built separately.
#pragma once

#include <span>
#include <string_view>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/program/program.h"

namespace kintsugi::run {

// Throws SharedError "[where] ..." if ranks have CPUs with different units, whose kernels would round differently, or
// different programs, which would wait for each other.
void require_same_programs(comm::Communicator& all, std::string_view where, std::span<const program::Program> stages);

}  // namespace kintsugi::run
