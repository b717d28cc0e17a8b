#include "kintsugi/device/timings.h"

#include <chrono>
#include <memory>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/device/emulate.h"

namespace kintsugi::device {
namespace {

class EmulatedTimings : public Timings {
 public:
  explicit EmulatedTimings(size_t points) : times_(std::make_shared<std::vector<Clock::time_point>>(points)) {}

  void mark(Stream& stream, size_t point) override {
    emulate::enqueue(stream, [times = times_, point] { times->at(point) = Clock::now(); });
  }
  int64_t between(size_t from, size_t to) override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(times_->at(to) - times_->at(from)).count();
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::shared_ptr<std::vector<Clock::time_point>> times_;  // shared with pending work
};

}  // namespace

std::unique_ptr<Timings> make_timings(Device& device, size_t points) {
  if (device.emulated()) return std::make_unique<EmulatedTimings>(points);
  auto* const make = reinterpret_cast<MakeTimings*>(device.symbol(kMakeTimings));
  base::require(make != nullptr, "device", "a module without \"{}\"", kMakeTimings);
  return std::unique_ptr<Timings>(make(points));
}

}  // namespace kintsugi::device
