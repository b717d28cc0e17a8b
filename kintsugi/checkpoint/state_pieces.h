// The pieces of a program's states that a rank writes to a checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kintsugi/checkpoint/writer.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/program/program.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::checkpoint {

// Throws unless the rank of `all` matches the rank and number of ranks of the executor's program.
void require_ranks(const run::Executor& executor, const comm::Communicator& all);

// The name and kind under which a state is stored.
std::string stored_name(const program::StateInfo& s);
Kind stored_kind(const program::StateInfo& s);

// Passes the bytes [begin, begin + bytes) of a state's buffer to `sink`.
using StateBytes = std::function<void(program::BufferId state, int64_t begin, int64_t bytes, const Sink& sink)>;

// Adds the rank's pieces; `read` is called when they are written.
void add_states(CheckpointWriter& writer, const program::Program& p, int rank, const StateBytes& read);
// The pieces of an executor's rank, read from it when they are written.
void add_states(CheckpointWriter& writer, const run::Executor& executor);

}  // namespace kintsugi::checkpoint
