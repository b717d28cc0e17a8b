// States that several ranks hold alike. They begin equal without a word, as functions of seed and name; these are for
// who would rather see it.
#pragma once

#include "kintsugi/comm/communicator.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::train {

// Compares the bytes of every weight and optimizer state among the ranks that hold it alike, by checksum. UserError
// that names the first state that differs and where. All ranks call together.
void check_replicas(const run::Executor& executor, comm::World& world);

// Gives every rank what the first of those that hold it alike has.
void broadcast_replicas(run::Executor& executor, comm::World& world);

}  // namespace kintsugi::train
