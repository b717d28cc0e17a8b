// Replicas: states that several ranks hold with the same values. They are initialized equally without communication,
// as functions of seed and name; here that is checked, or enforced.
#pragma once

#include "kintsugi/comm/communicator.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::train {

// Compares the bytes of every weight and optimizer state among the ranks that have a replica, by checksum. UserError
// that names the first state that differs and where. All ranks call together.
void check_replicas(const run::Executor& executor, comm::World& world);

// Gives every replica the bytes of the first.
void broadcast_replicas(run::Executor& executor, comm::World& world);

}  // namespace kintsugi::train
