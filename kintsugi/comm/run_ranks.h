// One thread for each rank of this process.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// CheckedCommunicator f(world) for each world on a thread of its own, and returns when all have ended. Where one
// throws, the others are ended too, and what the first threw is thrown here: of several, one that is not a Timeout.
void run_ranks(std::span<const std::unique_ptr<World>> worlds, const std::function<void(World&)>& f);

}  // namespace kintsugi::comm
