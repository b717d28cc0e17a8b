// Communicators for ranks that are threads of one process and share a device, or have devices with peer access.
#pragma once

#include <memory>
#include <span>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/device/device.h"

namespace kintsugi::comm {

// As World::group() of a world of threads, for buffers on `device`. An operation starts after all work that its members
// had enqueued on `compute`; wait() makes later work on `compute` wait for the operation, and blocks the host only
// until all members have enqueued it. Reduces in rank order. `world` and `device` must outlive the communicator.
std::unique_ptr<Communicator> device_group(World& world, device::Device& device, device::Stream& compute,
                                           std::span<const int> ranks, const GroupOptions& options = {});

}  // namespace kintsugi::comm
