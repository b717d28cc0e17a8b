// Groups of ranks with one device each, over NVIDIA NCCL.
#pragma once

#include <memory>
#include <span>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/device/device.h"

namespace kintsugi::comm {

// As World::group(), for buffers on `device`, the device of this rank. An operation starts after all work that this
// rank had enqueued on `compute`; wait() makes later work on `compute` wait for the operation, and blocks the host only
// until all members have enqueued it, naming a member that does not, as the groups of the world do. NCCL chooses the
// order of additions from the number of bytes and ranks and the topology. With options.in_rank_order, reductions are
// messages followed by our own addition in rank order; `options.sums` must then hold the reduced bytes plus 16 bytes
// per rank. progress() throws UserError if NCCL reports an error, and Timeout if the device makes no progress for
// options.time_limit on operations that all ranks have enqueued. Throws UserError if two ranks use the same device.
// `device`, `compute` and `world` must outlive the communicator.
std::unique_ptr<Communicator> nccl_group(World& world, device::Device& device, device::Stream& compute,
                                         std::span<const int> ranks, const GroupOptions& options = {});

// Aborts all of these groups at once after one failed or was not waited for; aborting them one by one would block on
// device work of the next. Ignores groups that are not NCCL's. A process can only exit after this.
void end_nccl_groups(std::span<Communicator* const> groups);

}  // namespace kintsugi::comm
