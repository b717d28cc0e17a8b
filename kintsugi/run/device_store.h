// What is not in a device's memory while it is not used, in pinned memory of the host: the place of FileStore where
// ranks compute on a device. Copies have a stream of their own, beside the kernels.
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
  // All of it is zero. UserError if the host does not give that much memory.
  DeviceStore(DeviceSide& side, int64_t bytes);

  // The events of a copy that may be under way.
  struct Copy {
    std::unique_ptr<device::Event> ready, done;
  };
  Copy make_copy() { return {side_.device().event(), side_.device().event()}; }

  // Enqueue a copy to or from memory of the device, once all that `compute` had enqueued is done; copies are done in
  // their order. What `compute` enqueues after wait() finds it done.
  void fetch(Copy& copy, int64_t offset, std::span<std::byte> to);
  void store(Copy& copy, int64_t offset, std::span<const std::byte> from);
  void wait(Copy& copy) { compute_.wait(*copy.done); }
  // The same for all copies so far. A list that is captured and has none leaves their stream alone.
  void join() {
    if (compute_.beside(*stream_)) compute_.wait_for(*stream_, *joined_);
  }

  // For the host, which waits for all that was enqueued.
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
