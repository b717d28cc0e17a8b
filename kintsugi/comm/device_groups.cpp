#include "kintsugi/comm/device_groups.h"

#include <cstdlib>
#include <optional>
#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/device_group.h"
#include "kintsugi/comm/nccl/group.h"

namespace kintsugi::comm {

namespace {

// What KINTSUGI_DEVICE_GROUPS asks for, if it is set.
std::optional<DeviceWay> asked_way() {
  const char* text = std::getenv("KINTSUGI_DEVICE_GROUPS");
  const std::string_view word = text == nullptr ? "" : text;
  if (word.empty()) return std::nullopt;
  if (word == "shared") return DeviceWay::shared;
  if (word == "nccl") return DeviceWay::nccl;
  if (word == "host") return DeviceWay::by_host;
  throw base::UserError("comm", "KINTSUGI_DEVICE_GROUPS is \"{}\"; there are shared, nccl, host", word);
}

}  // namespace

DeviceWay device_way(const World& world, const device::Device& device) {
  const bool processes = world.backend().ranks == RankKind::process;
  const std::optional<DeviceWay> asked = asked_way();
  if (asked == DeviceWay::shared && processes)
    throw base::UserError("comm", "KINTSUGI_DEVICE_GROUPS=shared is for ranks that are threads; these are processes");
  if (asked) return *asked;
  if (!processes) return DeviceWay::shared;
  return !device.emulated() && has_nccl() ? DeviceWay::nccl : DeviceWay::by_host;
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
