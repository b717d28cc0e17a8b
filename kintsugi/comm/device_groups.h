// Groups of ranks that compute on devices, by the way that is best where they run.
#pragma once

#include <memory>
#include <span>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/device/device.h"

namespace kintsugi::comm {

enum class DeviceWay {
  shared,   // ranks are threads that share a device (device_group.h)
  nccl,     // ranks have a device each (nccl/group.h)
  by_host,  // through memory of the host, by the world's own groups: the caller copies
};

// Ranks that are threads share a device. Those that are processes use NCCL where the library can be loaded; else the
// host. KINTSUGI_DEVICE_GROUPS in the environment, "shared", "nccl" or "host", decides otherwise; UserError for another
// word, or for a way that these ranks do not have.
DeviceWay device_way(const World& world, const device::Device& device);

// A group by that way, which is not by_host.
std::unique_ptr<Communicator> group_on_device(DeviceWay way, World& world, device::Device& device,
                                              device::Stream& compute, std::span<const int> ranks,
                                              const GroupOptions& options = {});

}  // namespace kintsugi::comm
