// Initial values generated on a device, as in initialize.cpp.
#pragma once

#include <array>
#include <cstdint>

#include "kintsugi/device/device.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::run {

// `count` elements at `to`: `scale` times the normal numbers of `key` from index `whole`, or `scale` itself.
struct Drawn {
  std::byte* to = nullptr;  // aligned for its type
  tensor::DType dtype = tensor::DType::f32;
  int64_t count = 0, whole = 0;
  bool constant = false;
  double scale = 0;
  std::array<uint32_t, 2> key = {};
};

// Enqueues the generation. Throws InternalError for types other than fp64, fp32, bf16, fp16 or int8. On a real device a
// number may differ from the host's by one ulp, if its logarithm or cosine in fp64 differs in the last bit.
using DeviceDraw = void(device::Stream& stream, const Drawn& drawn);
inline constexpr const char* kDeviceDraw = "kintsugi_device_draw_1";
// That of the device's module.
DeviceDraw* draw_on(device::Device& device);

}  // namespace kintsugi::run
