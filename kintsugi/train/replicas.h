// Replicas: states that several ranks hold with equal values. They are initialized equally without communication, as
// functions of seed and name; this checks or enforces it.
#pragma once

#include "kintsugi/comm/communicator.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::train {

// Compares the bytes of every weight and optimizer state among the ranks that replicate it, by checksum. Collective;
// throws UserError that names the first state that differs and where.
void check_replicas(const run::Executor& executor, comm::World& world);

// Copies the bytes of the first replica to all others.
void broadcast_replicas(run::Executor& executor, comm::World& world);

}  // namespace kintsugi::train
