#include "kintsugi/comm/device_groups.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>

#include "kintsugi/base/environment.h"
#include "kintsugi/base/error.h"
#include "kintsugi/comm/device_group.h"
#include "kintsugi/comm/nccl/group.h"
#include "kintsugi/comm/nccl/library.h"
#include "kintsugi/comm/same_on_all.h"

namespace kintsugi::comm {

namespace {

// What KINTSUGI_DEVICE_GROUPS asks for, if it is set.
std::optional<DeviceWay> asked_way(bool processes) {
  const std::string_view word = base::environment_word("comm", "KINTSUGI_DEVICE_GROUPS", {"shared", "nccl", "host"});
  if (word.empty()) return std::nullopt;
  if (word == "shared" && processes)
    throw base::UserError("comm", "KINTSUGI_DEVICE_GROUPS=shared is for ranks that are threads; these are processes");
  if (word == "shared") return DeviceWay::shared;
  if (word == "nccl") return DeviceWay::nccl;
  return DeviceWay::by_host;
}

}  // namespace

Exchange nccl_or_host(int library, int driver, bool messages) {
  using nccl::Order;
  const auto by_host = [](const std::string& why) {
    return Exchange{.way = DeviceWay::by_host, .captured = false, .said = "through memory of the host: " + why};
  };
  if (library == 0) return by_host("NCCL (libnccl.so.2) is not found");
  const std::string name = fmt::format("NCCL {}.{}.{}", library / 10000, library / 100 % 100, library % 100),
                    knows = fmt::format("a driver for CUDA {}.{}", driver / 1000, driver % 1000 / 10);
  if (!nccl::starts_in_order()) return by_host("NCCL_LAUNCH_ORDER_IMPLICIT is 0");
  const Order order = nccl::order_of(library, driver, false), captured = nccl::order_of(library, driver, true);
  if (order == Order::none) return by_host(name + " starts several groups in no order; 2.26 and newer do");
  if (messages && order != Order::as_enqueued)
    return by_host(
        fmt::format("with {}, {} ends each operation before the next, and stages wait for each other; one "
                    "for CUDA 12.3 is needed",
                    knows, name));
  const bool captures = !messages || captured == Order::as_enqueued;
  return {.way = DeviceWay::nccl,
          .captured = captures,
          .said = "through " + name +
                  (captures ? ""
                            : fmt::format(", with {}; a step of several stages is launched as one from NCCL 2.27 and a "
                                          "driver for CUDA 12.9 on",
                                          knows))};
}

void require_known_way(const World& world) {
  asked_way(world.backend().ranks == RankKind::process);
}

Exchange exchange_of(World& world, device::Device& device, bool messages) {
  const bool processes = world.backend().ranks == RankKind::process;
  const std::optional<DeviceWay> asked = asked_way(processes);
  if (asked == DeviceWay::by_host || (!asked && processes && device.emulated()))
    return {.way = DeviceWay::by_host, .captured = false, .said = "through memory of the host"};
  if (asked != DeviceWay::nccl && !processes) return {};
  if (device.emulated()) return {.way = DeviceWay::nccl};
  const nccl::Library* const library = nccl::library();
  std::array<int32_t, 2> least = {library == nullptr ? 0 : library->version, device.properties().driver};
  const std::unique_ptr<Communicator> all = group_of_all(world);
  all->wait(all->all_reduce(std::as_bytes(std::span(least)), std::as_writable_bytes(std::span(least)),
                            tensor::DType::i32, Reduction::min));
  Exchange found = nccl_or_host(least[0], least[1], messages);
  if (asked == DeviceWay::nccl && found.way == DeviceWay::by_host) found = {.way = DeviceWay::nccl, .captured = false};
  return found;
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
