// The reduction of comm/reduce.h on a device, with the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/device/device.h"

namespace kintsugi::comm {

// Maximum number of ranks that share a device.
inline constexpr int kMostOnDevice = 64;

struct DeviceTerms {
  int ranks = 0;
  const std::byte* ins[kMostOnDevice] = {};
  std::byte* outs[kMostOnDevice] = {};  // null: not needed; each may alias an input exactly
  int64_t elements = 0;
};

// Enqueues the reduction on `stream`. Throws InternalError for a dtype that cannot be reduced.
using DeviceReduce = void(device::Stream& stream, const DeviceTerms& terms, tensor::DType dtype, Reduction reduction);
inline constexpr const char* kDeviceReduce = "kintsugi_device_reduce_1";
// The implementation in the module of `device`.
DeviceReduce* reduction_on(device::Device& device);

}  // namespace kintsugi::comm
