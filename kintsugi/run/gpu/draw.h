// Initial values that are made on a device, as initialize.cpp makes them.
#pragma once

#include <array>
#include <cstdint>

#include "kintsugi/device/device.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::run {

// `count` elements at `to`: `scale` times the normal numbers of `key` from index `whole` on, or `scale` itself.
struct Drawn {
  std::byte* to = nullptr;  // aligned for its type
  tensor::DType dtype = tensor::DType::f32;
  int64_t count = 0, whole = 0;
  bool constant = false;
  double scale = 0;
  std::array<uint32_t, 2> key = {};
};

// Enqueues it. InternalError for what is not fp64, fp32, bf16 or fp16. Of a real device a number may be the neighbour
// of the one that the host makes, where its logarithm or cosine in fp64 ends in another bit.
using DeviceDraw = void(device::Stream& stream, const Drawn& drawn);
inline constexpr const char* kDeviceDraw = "kintsugi_device_draw_1";
// That of the device's module.
DeviceDraw* draw_on(device::Device& device);

}  // namespace kintsugi::run
