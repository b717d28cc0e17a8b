// Times at which a device reached the points of a list of calls, by the clock of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kintsugi/device/timings.h"
#include "kintsugi/run/device_side.h"

namespace kintsugi::run {

// begin(), then work and mark() alternately, then take(); may be repeated. Allocates in the constructor and in take().
class DeviceTimes {
 public:
  DeviceTimes(DeviceSide& device, size_t points);

  // Waits for everything that was enqueued, and reads the clock of the device.
  void begin();
  void mark();  // a point after what was enqueued
  // Waits. The points in order, ascending, in nanoseconds of profile::now().
  std::vector<int64_t> take();

 private:
  static constexpr size_t kRounds = 4;  // of which the shortest counts

  DeviceSide& device_;
  std::unique_ptr<device::Timings> timings_;
  size_t known_ = 0;  // the point whose host time is known
  int64_t time_ = 0;  // its host time
  size_t next_ = 0;
};

}  // namespace kintsugi::run
