// One thread for each rank of this process.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// Calls f(world) for each world on a thread of its own, and returns when all have ended. If one throws, the worlds of
// all are aborted. Throws the first error that is no Timeout, or else the first error.
void run_ranks(std::span<const std::unique_ptr<World>> worlds, const std::function<void(World&)>& f);

}  // namespace kintsugi::comm
