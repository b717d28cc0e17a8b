// What a checkpoint holds of the states of a program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// The states that a stage saves; for a weight with a master copy, the master.
std::vector<const StateInfo*> saved_states(const Program& p);

// Bytes of the states of all stages, counting each element once despite replication.
int64_t checkpoint_bytes(std::span<const Program> stages);

}  // namespace kintsugi::program
