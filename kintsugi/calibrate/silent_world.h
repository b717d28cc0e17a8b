// A world of one rank that stands alone: what it enqueues is done at once, with values of its own in place of those of
// its peers. So a program runs with the memory and the kernels of a step, but without communication.
#pragma once

#include <memory>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::calibrate {

std::unique_ptr<comm::World> silent_world(int rank, int ranks);

}  // namespace kintsugi::calibrate
