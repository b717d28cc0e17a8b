// Runs one thread per rank of this process.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// Calls f(world) for each world on its own thread and returns when all have finished. If one throws, aborts all worlds.
// Rethrows the first error that is not a Timeout, or else the first error.
void run_ranks(std::span<const std::unique_ptr<World>> worlds, const std::function<void(World&)>& f);

}  // namespace kintsugi::comm
