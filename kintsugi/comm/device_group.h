// Groups of ranks that compute on a device and are threads of one process: they share the device, or devices that reach
// each other's memory.
#pragma once

#include <memory>
#include <span>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/device/device.h"

namespace kintsugi::comm {

// As World::group, of a world of threads, for buffers of `device`. An operation starts when all that its members had
// enqueued in `compute` is done; wait() makes what is enqueued in `compute` from then on wait for it, and the host only
// until all members have enqueued it. Adds in the order of ranks. Both must outlive the communicator.
std::unique_ptr<Communicator> device_group(World& world, device::Device& device, device::Stream& compute,
                                           std::span<const int> ranks, const GroupOptions& options = {});

}  // namespace kintsugi::comm
