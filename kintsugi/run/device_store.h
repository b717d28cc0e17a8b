// Offloaded data of a rank that computes on a device, in pinned memory of the host; FileStore is the same on the host.
// Copies run on their own stream, concurrently with kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kintsugi/device/device.h"
#include "kintsugi/run/device_side.h"

namespace kintsugi::run {

class DeviceStore {
 public:
  // Filled with zeros. UserError if the host cannot allocate that much memory.
  DeviceStore(DeviceSide& side, int64_t bytes);

  // The events of a copy that may be in flight.
  struct Copy {
    std::unique_ptr<device::Event> ready, done;
  };
  Copy make_copy() { return {side_.device().event(), side_.device().event()}; }

  // Enqueue a copy to or from device memory, after everything that `compute` has enqueued; copies are in order. What
  // `compute` enqueues after wait() follows the copy.
  void fetch(Copy& copy, int64_t offset, std::span<std::byte> to);
  void store(Copy& copy, int64_t offset, std::span<const std::byte> from);
  void wait(Copy& copy) { compute_.wait(*copy.done); }
  // The same for all copies so far. Does nothing in a captured list that has none.
  void join() {
    if (compute_.beside(*stream_)) compute_.wait_for(*stream_, *joined_);
  }

  // For the host, which waits for everything that was enqueued.
  void read(int64_t offset, std::span<std::byte> to);
  void write(int64_t offset, std::span<const std::byte> from);

 private:
  void begin(Copy& copy);

  DeviceSide& side_;
  device::Stream& compute_;
  std::unique_ptr<device::Memory> memory_;  // pinned
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Event> joined_;
};

}  // namespace kintsugi::run
