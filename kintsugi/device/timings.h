// When a stream came to points of its work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kintsugi/device/device.h"

namespace kintsugi::device {

class Timings {
 public:
  virtual ~Timings() = default;

  // Enqueued: the stream notes the time when it comes there. Each point once, until all are passed; not in a capture.
  virtual void mark(Stream& stream, size_t point) = 0;
  // Nanoseconds from one point to another, negative where that was the first to be passed. The stream was synchronized
  // since.
  virtual int64_t between(size_t from, size_t to) = 0;
};

// Points 0 to `points` - 1. They outlive neither the device nor its streams.
std::unique_ptr<Timings> make_timings(Device& device, size_t points);

// The entry function of the module for CUDA.
using MakeTimings = Timings*(size_t points);  // the caller owns them
inline constexpr const char* kMakeTimings = "kintsugi_timings_1";

}  // namespace kintsugi::device
