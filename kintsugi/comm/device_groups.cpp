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

// The transport that KINTSUGI_DEVICE_GROUPS requests, if it is set.
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

Exchange nccl_or_host(const nccl::Versions& least, bool messages) {
  using nccl::Order;
  const auto by_host = [](const std::string& why) {
    return Exchange{.way = DeviceWay::by_host, .captured = false, .said = "through memory of the host: " + why};
  };
  if (least.library == 0) return by_host("NCCL (libnccl.so.2) is not found");
  const auto cuda = [](int version) { return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10); };
  const std::string name = fmt::format("NCCL {}.{}.{}", least.library / 10000, least.library / 100 % 100,
                                       least.library % 100),
                    built = fmt::format("{}, built with {}, and a driver for {}", name,
                                        least.built == 0 ? "an unknown CUDA" : cuda(least.built), cuda(least.driver));
  const Order order = nccl::order_of(least, false), captured = nccl::order_of(least, true);
  if (order == Order::none) return by_host(name + " starts several groups in no order; 2.26 and newer do");
  if (messages && order != Order::as_enqueued)
    return by_host(built +
                   ", ends each operation before the next, while stages wait for each other; both from CUDA "
                   "12.3 on are needed");
  const bool captures = !messages || captured == Order::as_enqueued;
  return {.way = DeviceWay::nccl,
          .captured = captures,
          .said = "through " + (captures ? name
                                         : built + "; a step of several stages is launched as one from NCCL 2.27 and a "
                                                   "driver for CUDA 12.9 on")};
}

void require_known_way(const World& world) {
  asked_way(world.backend().ranks == RankKind::process);
}

Exchange exchange_of(World& world, device::Device& device, bool messages) {
  const bool processes = world.backend().ranks == RankKind::process;
  const std::optional<DeviceWay> asked = asked_way(processes);
  const Exchange host = {.way = DeviceWay::by_host, .captured = false, .said = "through memory of the host"};
  if (!processes || device.emulated()) {
    if (asked == DeviceWay::by_host || (!asked && processes)) return host;
    return {.way = asked.value_or(DeviceWay::shared)};
  }
  // Environments may differ between ranks.
  const nccl::Library* const library = nccl::library();
  std::array<int32_t, 6> least = {library == nullptr ? 0 : library->version, device.properties().driver,
                                  library == nullptr ? 0 : library->cuda,    nccl::starts_in_order() ? 1 : 0,
                                  asked == DeviceWay::by_host ? 0 : 1,       asked == DeviceWay::nccl ? 1 : 0};
  const std::unique_ptr<Communicator> all = group_of_all(world);
  all->wait(all->all_reduce(std::as_bytes(std::span(least)), std::as_writable_bytes(std::span(least)),
                            tensor::DType::i32, Reduction::min));
  const auto [version, driver, built, in_order, not_host, all_nccl] = least;
  if (not_host == 0) return host;
  Exchange found = nccl_or_host({.library = version, .driver = driver, .built = built}, messages);
  if (all_nccl == 1 && found.way == DeviceWay::by_host) return {.way = DeviceWay::nccl, .captured = false};
  if (in_order == 0 && found.way == DeviceWay::nccl) {
    found = host;
    found.said += ": NCCL_LAUNCH_ORDER_IMPLICIT is 0";
  }
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
