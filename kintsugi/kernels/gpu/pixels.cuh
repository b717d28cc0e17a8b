// Images as the first layer reads them: bytes or numbers [samples channels spatial...], normalized per channel, to
// [samples spatial... channels].
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/strides.h"
#include "kintsugi/kernels/pixel_scale.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// Some of the channels.
struct PixelChannels {
  static constexpr int kMost = 128;
  int first = 0, count = 0;
  float scale[kMost], shift[kMost];
};

struct Pixels {
  const void* x = nullptr;
  DType dtype = DType::u8;
  int64_t channels = 1, count = 0;  // count: positions of all samples
  Divisor positions;                // of a sample
  bool add = false;

  __device__ __forceinline__ float load(int64_t at) const {
    if (dtype == DType::u8) return static_cast<float>(static_cast<const uint8_t*>(x)[at]);
    if (dtype == DType::f32) return static_cast<const float*>(x)[at];
    if (dtype == DType::bf16) return widen(static_cast<const bf16*>(x)[at]);
    return widen(static_cast<const f16*>(x)[at]);
  }
};

template <typename T>
__global__ void __launch_bounds__(kPieceThreads) normalize_pixels(Pixels p, PixelChannels c, T* y) {
  for (int64_t at = first_piece(); at < p.count; at += all_threads()) {
    const int64_t sample = p.positions.quotient(at), position = at - sample * p.positions.by;
    const int64_t from = (sample * p.channels + c.first) * p.positions.by + position;
    T* const to = y + at * p.channels + c.first;
    for (int i = 0; i < c.count; ++i)
      put(to + i, fmaf(p.load(from + i * p.positions.by), c.scale[i], c.shift[i]), p.add);
  }
}

}  // namespace

void pixels(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  if (y.elements() == 0) return;
  if (x.dtype() != DType::u8) dispatch("pixels", x.dtype(), [](auto) {});
  const tensor::Shape& shape = y.shape();
  const tensor::Dim& channels = shape[shape.rank() - 1];
  const tensor::DimIndex& index = call.index(channels.name);
  const int64_t positions = y.elements() / shape[0].size / channels.size;
  const Pixels p = {.x = x.data,
                    .dtype = x.dtype(),
                    .channels = channels.size,
                    .count = shape[0].size * positions,
                    .positions = Divisor(positions),
                    .add = call.accumulates(0)};
  for (int64_t first = 0; first < channels.size; first += PixelChannels::kMost) {
    PixelChannels some{.first = static_cast<int>(first),
                       .count = static_cast<int>(std::min<int64_t>(channels.size - first, PixelChannels::kMost)),
                       .scale = {},
                       .shift = {}};
    for (int i = 0; i < some.count; ++i) {
      const int64_t global = index[first + i];
      if (global < 0) continue;
      const kernels::PixelScale s = kernels::pixel_scale(call.attributes, x.dtype(), global);
      some.scale[i] = static_cast<float>(s.scale), some.shift[i] = static_cast<float>(s.shift);
    }
    dispatch("pixels", y.dtype(),
             [&]<typename T>(T) { launch_pieces(*call.stream, p.count, normalize_pixels<T>, p, some, data<T>(y)); });
  }
}

}  // namespace kintsugi::KINTSUGI_GPU
