// Groups of ranks that compute on devices and communicate through host memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/device/device.h"

namespace kintsugi::comm {

struct HostStaging {
  size_t transfers = 1;                    // in flight
  int64_t bytes = 0;                       // of the largest operand
  std::function<void()> synchronize = {};  // blocks the host until all work in `compute` is done
};

// Decorates a group whose buffers are host memory; those of the result are memory of `device`. An operation copies its
// input to pinned memory and waits for the copy, so it follows all work in `compute`; wait() enqueues the copy of the
// result there. Allocates pinned memory for `staging` now, and more only for transfers that exceed it. `device` and
// `compute` must outlive the communicator.
std::unique_ptr<Communicator> through_host(std::unique_ptr<Communicator> group, device::Device& device,
                                           device::Stream& compute, HostStaging staging);

}  // namespace kintsugi::comm
