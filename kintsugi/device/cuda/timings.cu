// CUDA events with timing.
#include <cuda_runtime.h>

#include <cmath>
#include <vector>

#include "kintsugi/device/cuda/check.h"
#include "kintsugi/device/timings.h"

namespace kintsugi::device {
namespace {

class CudaTimings : public Timings {
 public:
  explicit CudaTimings(size_t points) : events_(points) {
    for (cudaEvent_t& event : events_) check(cudaEventCreate(&event), "to make an event");
  }
  ~CudaTimings() override {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }

  void mark(Stream& stream, size_t point) override {
    check(cudaEventRecord(events_.at(point), static_cast<cudaStream_t>(stream.native())), "to record an event");
  }
  // CUDA reports milliseconds in fp32: a resolution of 60 ns at one second.
  int64_t between(size_t from, size_t to) override {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, events_.at(from), events_.at(to)), "to say when it was done");
    return std::llround(1e6 * static_cast<double>(milliseconds));
  }

 private:
  std::vector<cudaEvent_t> events_;
};

}  // namespace
}  // namespace kintsugi::device

extern "C" __attribute__((visibility("default"))) kintsugi::device::Timings* kintsugi_timings_1(size_t points) {
  return new kintsugi::device::CudaTimings(points);
}
