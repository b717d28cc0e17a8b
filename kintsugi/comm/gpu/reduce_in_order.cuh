#include <algorithm>
#include <type_traits>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/gpu/reduce_in_order.h"
#include "kintsugi/device/gpu.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using comm::DeviceTerms;
using comm::Reduction;
using tensor::DType;

constexpr int kReduceThreads = 256;

// Propagates NaN.
template <typename W>
__device__ W join(W a, W b, Reduction how) {
  if (how == Reduction::sum || how == Reduction::mean) return a + b;
  if (a != a || b != b) return a != a ? a : b;
  return (how == Reduction::max) == (b > a) ? b : a;
}

// Type of the accumulator: fp32 for 16-bit types.
template <typename T>
__device__ auto term(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    return widen(x);
  }
}

template <typename T, typename W>
__device__ T result(W sum) {
  if constexpr (sizeof(T) < sizeof(W)) {
    return narrow<T>(sum);
  } else {
    return sum;
  }
}

// Each thread reduces N elements: 16 bytes, or one element.
template <typename T, int N>
__global__ void __launch_bounds__(kReduceThreads) reduce_in_order(DeviceTerms t, Reduction how) {
  using W = decltype(term(T{}));
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kReduceThreads + threadIdx.x) * N;
  if (i >= t.elements) return;
  W sum[N] = {};
  for (int rank = 0; rank < t.ranks; ++rank) {
    const auto x = *reinterpret_cast<const Vec<T, N>*>(t.ins[rank] + i * static_cast<int64_t>(sizeof(T)));
    GPU_UNROLL
    for (int j = 0; j < N; ++j) sum[j] = rank == 0 ? term(x[j]) : join(sum[j], term(x[j]), how);
  }
  Vec<T, N> y;
  GPU_UNROLL
  for (int j = 0; j < N; ++j) {
    if (how == Reduction::mean) sum[j] /= static_cast<W>(t.ranks);
    y[j] = result<T>(sum[j]);
  }
  for (int rank = 0; rank < t.ranks; ++rank)
    if (t.outs[rank] != nullptr) *reinterpret_cast<Vec<T, N>*>(t.outs[rank] + i * static_cast<int64_t>(sizeof(T))) = y;
}

template <typename T>
void reduce_as(device::Stream& stream, const DeviceTerms& t, Reduction how) {
  constexpr int kWide = 16 / sizeof(T);
  bool wide = t.elements % kWide == 0;
  for (int rank = 0; rank < t.ranks; ++rank)
    wide &= (reinterpret_cast<uintptr_t>(t.ins[rank]) | reinterpret_cast<uintptr_t>(t.outs[rank])) % 16 == 0;
  const int64_t per_block = kReduceThreads * int64_t{wide ? kWide : 1};
  const auto blocks = static_cast<unsigned>((t.elements + per_block - 1) / per_block);
  launch(stream, blocks, kReduceThreads, 0, wide ? reduce_in_order<T, kWide> : reduce_in_order<T, 1>, t, how);
}

}  // namespace

void device_reduce(device::Stream& stream, const DeviceTerms& terms, DType dtype, Reduction reduction) {
  switch (dtype) {
    case DType::f64:
      return reduce_as<double>(stream, terms, reduction);
    case DType::f32:
      return reduce_as<float>(stream, terms, reduction);
    case DType::bf16:
      return reduce_as<bf16>(stream, terms, reduction);
    case DType::f16:
      return reduce_as<f16>(stream, terms, reduction);
    case DType::i64:
      return reduce_as<int64_t>(stream, terms, reduction);
    case DType::i32:
      return reduce_as<int32_t>(stream, terms, reduction);
    default:
      throw base::InternalError("comm", "a reduction of {}", tensor::name_of(dtype));
  }
}

}  // namespace kintsugi::KINTSUGI_GPU

#if KINTSUGI_ON_GPU
extern "C" __attribute__((visibility("default"))) void kintsugi_device_reduce_1(
    kintsugi::device::Stream& stream, const kintsugi::comm::DeviceTerms& terms, kintsugi::tensor::DType dtype,
    kintsugi::comm::Reduction reduction) {
  kintsugi::KINTSUGI_GPU::device_reduce(stream, terms, dtype, reduction);
}
#endif
