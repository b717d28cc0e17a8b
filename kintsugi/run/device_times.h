// When a device came to the points of a list of calls, by the clock of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kintsugi/device/timings.h"
#include "kintsugi/run/device_side.h"

namespace kintsugi::run {

// begin(), work and mark() in turns, take(); then again. Allocates when it is made, and in take().
class DeviceTimes {
 public:
  DeviceTimes(DeviceSide& device, size_t points);

  // Waits for all that was enqueued, and finds out what time it is on the device.
  void begin();
  void mark();  // a point, behind what was enqueued
  // Waits. The points in their order, ascending, in nanoseconds of profile::now().
  std::vector<int64_t> take();

 private:
  static constexpr size_t kRounds = 4;  // of which the shortest counts

  DeviceSide& device_;
  std::unique_ptr<device::Timings> timings_;
  size_t known_ = 0;  // the point whose time by the host's clock is
  int64_t time_ = 0;  // this
  size_t next_ = 0;
};

}  // namespace kintsugi::run
