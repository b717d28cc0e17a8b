// Groups of ranks with a device each, which exchange through NVIDIA's NCCL.
#pragma once

#include <memory>
#include <span>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/device/device.h"

namespace kintsugi::comm {

// As World::group, for buffers of `device`, that of this rank. An operation starts when all that this rank had enqueued
// in `compute` is done; wait() makes what is enqueued in `compute` from then on wait for it, and the host only until
// all members have enqueued it: one that does not is named, as by the world's own groups. Sums are added in the order
// of the library, which the number of bytes and of ranks, and the way between the devices, decide; or with
// options.in_rank_order in that of the ranks, by messages and our own addition: `options.sums` is as large as what is
// added, and 16 bytes more for each rank. progress() throws a UserError if the library has met an error, and a Timeout
// if the device has done nothing for options.time_limit of what all have enqueued. UserError if two ranks have one
// card. Device, stream and world must outlive the communicator.
std::unique_ptr<Communicator> nccl_group(World& world, device::Device& device, device::Stream& compute,
                                         std::span<const int> ranks, const GroupOptions& options = {});

// Where one of these groups failed, or was not waited for: ends all of them at once. One after the other would wait for
// what the device does of the next. Of other groups than NCCL's it does nothing. A process can only end after it.
void end_nccl_groups(std::span<Communicator* const> groups);

}  // namespace kintsugi::comm
