// Groups of ranks that compute on devices and exchange through memory of the host.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/device/device.h"

namespace kintsugi::comm {

struct HostStaging {
  size_t transfers = 1;                    // that are open at a time
  int64_t bytes = 0;                       // of the largest operand of one
  std::function<void()> synchronize = {};  // the host waits for all that is enqueued in `compute`
};

// Decorates a group whose buffers are memory of the host: those of the result are memory of `device`. An operation
// copies its input to pinned memory and waits for the copy, so it comes after all that is enqueued in `compute`; wait()
// enqueues the copy of the result there. Allocates pinned memory for `staging` now, and more only for transfers that
// exceed it. `device` and `compute` outlive the communicator.
std::unique_ptr<Communicator> through_host(std::unique_ptr<Communicator> group, device::Device& device,
                                           device::Stream& compute, HostStaging staging);

}  // namespace kintsugi::comm
