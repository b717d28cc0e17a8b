// A world of a single rank: whatever it enqueues completes at once, with its own values in place of those of its peers.
// A program thus runs with the memory and kernels of a step, but without communication.
#pragma once

#include <memory>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::calibrate {

std::unique_ptr<comm::World> silent_world(int rank, int ranks);

}  // namespace kintsugi::calibrate
