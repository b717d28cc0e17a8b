// Communicators for ranks that compute on devices: selects the transport.
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
  nccl,     // each rank has its own device (nccl/group.h)
  by_host,  // staged by the caller through host memory, over the groups of the world
};

// How the ranks of a run communicate; the same on all of them.
struct Exchange {
  DeviceWay way = DeviceWay::shared;
  bool captured = true;   // steps may be captured and launched as graphs
  std::string said = {};  // with processes, for the user: "through NCCL 2.28.9"
};

// Ranks that are threads share a device. Ranks that are processes use NCCL if the library starts the operations of
// several groups in the order enqueued, as program::verify_ranks assumes; otherwise host memory. `messages`: ranks also
// send to each other. The environment variable KINTSUGI_DEVICE_GROUPS, "shared", "nccl" or "host", overrides the
// choice; UserError for another value, or for a transport that these ranks cannot use. Collective over the world.
Exchange exchange_of(World& world, device::Device& device, bool messages);

// Throws the UserErrors above for this rank alone.
void require_known_way(const World& world);

// Chooses between NCCL and host memory, given the lowest versions of all ranks.
Exchange nccl_or_host(const nccl::Versions& least, bool messages);

// Creates a group over that transport; `way` must not be by_host.
std::unique_ptr<Communicator> group_on_device(DeviceWay way, World& world, device::Device& device,
                                              device::Stream& compute, std::span<const int> ranks,
                                              const GroupOptions& options = {});

}  // namespace kintsugi::comm
