// The entry function of a module. Increment the number when World, Communicator or WorldOptions change.
#pragma once

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

using MpiEntry = World*(const WorldOptions*);  // throws; the caller owns the world
inline constexpr const char* kMpiEntry = "kintsugi_mpi_world_3";

}  // namespace kintsugi::comm

extern "C" kintsugi::comm::World* kintsugi_mpi_world_3(const kintsugi::comm::WorldOptions* options);
