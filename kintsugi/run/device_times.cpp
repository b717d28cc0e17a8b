#include "kintsugi/run/device_times.h"

#include <algorithm>
#include <limits>

#include "kintsugi/profile/recorder.h"

namespace kintsugi::run {

DeviceTimes::DeviceTimes(DeviceSide& device, size_t points)
    : device_(device), timings_(device::make_timings(device.device(), kRounds + points)) {}

// A point that an idle stream passes between two readings of the clock is taken to be halfway, with half of that as
// error.
void DeviceTimes::begin() {
  device_.synchronize();
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t round = 0; round < kRounds; ++round) {
    const int64_t before = profile::now();
    timings_->mark(device_.stream(), round);
    device_.synchronize();
    const int64_t took = profile::now() - before;
    if (took >= least) continue;
    least = took;
    known_ = round;
    time_ = before + took / 2;
  }
  next_ = kRounds;
}

void DeviceTimes::mark() {
  timings_->mark(device_.stream(), next_++);
}

std::vector<int64_t> DeviceTimes::take() {
  device_.synchronize();
  std::vector<int64_t> times;
  for (size_t point = kRounds; point < next_; ++point) {
    const int64_t time = time_ + timings_->between(known_, point);
    times.push_back(times.empty() ? time : std::max(times.back(), time));
  }
  return times;
}

}  // namespace kintsugi::run
