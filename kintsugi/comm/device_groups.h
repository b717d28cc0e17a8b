// Groups of ranks that compute on devices, by the way that is best where they run.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/nccl/library.h"
#include "kintsugi/device/device.h"

namespace kintsugi::comm {

enum class DeviceWay {
  shared,   // ranks are threads that share a device (device_group.h)
  nccl,     // ranks have a device each (nccl/group.h)
  by_host,  // through memory of the host, by the world's own groups: the caller copies
};

// How the ranks of a run exchange, the same on all of them.
struct Exchange {
  DeviceWay way = DeviceWay::shared;
  bool captured = true;   // steps may be captured and launched as one
  std::string said = {};  // of processes, for the user: "through NCCL 2.28.9"
};

// Ranks that are threads share a device. Those that are processes use NCCL where the library starts what several groups
// enqueue in that order, as program::verify_ranks takes it; else the host. `messages`: ranks also send to each other.
// KINTSUGI_DEVICE_GROUPS in the environment, "shared", "nccl" or "host", decides otherwise; UserError for another word,
// or for a way that these ranks do not have. All ranks of the world together.
Exchange exchange_of(World& world, device::Device& device, bool messages);

// UserError as above, of this rank alone.
void require_known_way(const World& world);

// The choice between NCCL and the host, for the least versions of all ranks.
Exchange nccl_or_host(const nccl::Versions& least, bool messages);

// A group by that way, which is not by_host.
std::unique_ptr<Communicator> group_on_device(DeviceWay way, World& world, device::Device& device,
                                              device::Stream& compute, std::span<const int> ranks,
                                              const GroupOptions& options = {});

}  // namespace kintsugi::comm
