// Times at which a stream reaches points of its work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kintsugi/device/device.h"

namespace kintsugi::device {

class Timings {
 public:
  virtual ~Timings() = default;

  // Enqueues a time stamp. Each point once, until all have been used; not in a capture.
  virtual void mark(Stream& stream, size_t point) = 0;
  // Nanoseconds from one point to another, negative if `to` was reached first. Requires that the stream has been
  // synchronized since.
  virtual int64_t between(size_t from, size_t to) = 0;
};

// Points 0 to `points` - 1. The device and its streams must outlive the result.
std::unique_ptr<Timings> make_timings(Device& device, size_t points);

// Entry function of the CUDA module.
using MakeTimings = Timings*(size_t points);  // the caller owns the result
inline constexpr const char* kMakeTimings = "kintsugi_timings_1";

}  // namespace kintsugi::device
