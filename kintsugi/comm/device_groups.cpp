#include "kintsugi/comm/device_groups.h"

#include <cstdlib>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/device_group.h"
#include "kintsugi/comm/nccl/group.h"

namespace kintsugi::comm {

DeviceWay device_way(const World& world, const device::Device& device, bool in_rank_order) {
  const bool processes = world.backend().ranks == RankKind::process;
  const char* text = std::getenv("KINTSUGI_DEVICE_GROUPS");
  const std::string_view wanted = text == nullptr ? "" : text;
  if (wanted.empty()) {
    if (!processes) return DeviceWay::shared;
    return !in_rank_order && !device.emulated() && has_nccl() ? DeviceWay::nccl : DeviceWay::by_host;
  }
  if (wanted == "shared" && processes)
    throw base::UserError("comm", "KINTSUGI_DEVICE_GROUPS=shared is for ranks that are threads; these are processes");
  if (wanted == "nccl" && in_rank_order)
    throw base::UserError("comm",
                          "KINTSUGI_DEVICE_GROUPS=nccl adds in the library's order; train.reproducible needs that of "
                          "the ranks: use host, or leave it out");
  if (wanted == "shared") return DeviceWay::shared;
  if (wanted == "nccl") return DeviceWay::nccl;
  if (wanted == "host") return DeviceWay::by_host;
  throw base::UserError("comm", "KINTSUGI_DEVICE_GROUPS is \"{}\"; there are shared, nccl, host", wanted);
}

std::unique_ptr<Communicator> group_on_device(DeviceWay way, World& world, device::Device& device,
                                              device::Stream& compute, std::span<const int> ranks,
                                              const GroupOptions& options) {
  switch (way) {
    case DeviceWay::shared:
      return device_group(world, device, compute, ranks, options);
    case DeviceWay::nccl:
      return nccl_group(world, device, compute, ranks, options);
    case DeviceWay::by_host:
      break;
  }
  throw base::InternalError("comm", "a group by the host is the world's");
}

}  // namespace kintsugi::comm
