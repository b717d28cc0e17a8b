// Entry functions of the CUDA module. Increment the number when Device, Stream or Properties change.
#pragma once

#include "kintsugi/device/device.h"

namespace kintsugi::device {

using CudaEntry = Device*(int number, void* module);  // throws; the caller owns the device
inline constexpr const char* kCudaEntry = "kintsugi_cuda_device_7";
using CudaCount = int();  // number of devices of this machine; throws if there are none; opens none
inline constexpr const char* kCudaCount = "kintsugi_cuda_count_1";
using CudaSuits = void(int number);  // throws unless its compute capability is supported; opens nothing
inline constexpr const char* kCudaSuits = "kintsugi_cuda_suits_1";

}  // namespace kintsugi::device

extern "C" kintsugi::device::Device* kintsugi_cuda_device_7(int number, void* module);
extern "C" int kintsugi_cuda_count_1();
extern "C" void kintsugi_cuda_suits_1(int number);
