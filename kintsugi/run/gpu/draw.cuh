#include "kintsugi/base/error.h"
#include "kintsugi/device/gpu.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/run/gpu/draw.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using run::Drawn;

constexpr int kDrawThreads = 256;

template <typename T>
__device__ T rounded(double x) {
  if constexpr (sizeof(T) == 8) {
    return x;
  } else if constexpr (sizeof(T) == 1) {  // as initialize.cpp: of the number in fp32
    const float nearest = rintf(static_cast<float>(x));
    return static_cast<T>(nearest > 127 ? 127.0f : nearest < -127 ? -127.0f : nearest);
  } else {
    return narrow<T>(static_cast<float>(x));
  }
}

// One thread per pair of numbers, whose first may precede the run and whose second may follow it.
template <typename T>
__global__ void __launch_bounds__(kDrawThreads) draw(Drawn d) {
  const int64_t first = d.whole / 2 + static_cast<int64_t>(blockIdx.x) * kDrawThreads + threadIdx.x;
  if (2 * first >= d.whole + d.count) return;
  const std::array<double, 2> pair = kernels::normal_pair(d.key, static_cast<uint64_t>(first));
  for (int i = 0; i < 2; ++i)
    if (const int64_t at = 2 * first + i - d.whole; at >= 0 && at < d.count)
      reinterpret_cast<T*>(d.to)[at] = rounded<T>(d.scale * pair[static_cast<size_t>(i)]);
}

template <typename T>
__global__ void __launch_bounds__(kDrawThreads) fill(Drawn d) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kDrawThreads + threadIdx.x;
  if (at < d.count) reinterpret_cast<T*>(d.to)[at] = rounded<T>(d.scale);
}

template <typename T>
void draw_as(device::Stream& stream, const Drawn& d) {
  const int64_t threads = d.constant ? d.count : (d.whole + d.count + 1) / 2 - d.whole / 2;
  const auto blocks = static_cast<unsigned>((threads + kDrawThreads - 1) / kDrawThreads);
  launch(stream, blocks, kDrawThreads, 0, d.constant ? fill<T> : draw<T>, d);
}

}  // namespace

void device_draw(device::Stream& stream, const Drawn& d) {
  using tensor::DType;
  switch (d.dtype) {
    case DType::f64:
      return draw_as<double>(stream, d);
    case DType::f32:
      return draw_as<float>(stream, d);
    case DType::bf16:
      return draw_as<bf16>(stream, d);
    case DType::f16:
      return draw_as<f16>(stream, d);
    case DType::i8:
      return draw_as<int8_t>(stream, d);
    default:
      throw base::InternalError("run", "initial values of {}", tensor::name_of(d.dtype));
  }
}

}  // namespace kintsugi::KINTSUGI_GPU

#if KINTSUGI_ON_GPU
extern "C" __attribute__((visibility("default"))) void kintsugi_device_draw_1(kintsugi::device::Stream& stream,
                                                                              const kintsugi::run::Drawn& drawn) {
  kintsugi::KINTSUGI_GPU::device_draw(stream, drawn);
}
#endif
