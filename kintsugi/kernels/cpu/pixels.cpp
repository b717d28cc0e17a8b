#include <array>

#include "kintsugi/kernels/cpu/images.h"
#include "kintsugi/kernels/pixel_scale.h"

namespace kintsugi::kernels::cpu {
namespace {

using tensor::DType;
using tensor::View;

constexpr int64_t kMostChannels = 16;

// One sample: x [channels positions] -> y [positions channels]
template <typename T>
void transpose(const T* x, float* y, int64_t positions, int64_t channels, const PixelScale* scales) {
  for (int64_t c = 0; c < channels; ++c) {
    const auto scale = static_cast<float>(scales[c].scale), shift = static_cast<float>(scales[c].shift);
    for (int64_t i = 0; i < positions; ++i)
      y[i * channels + c] = static_cast<float>(x[c * positions + i]) * scale + shift;
  }
}

}  // namespace

bool pixels_take(const Operands& o) {
  const DType x = o.ins[0].dtype;
  return (x == DType::u8 || x == DType::f32) && o.outs[0].dtype == DType::f32 && o.ins[0].shape.rank() >= 2 &&
         o.ins[0].shape[1].size <= kMostChannels;
}

void pixels(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  const int64_t samples = x.shape()[0].size, channels = x.shape()[1].size;
  if (x.elements() == 0) return;
  const int64_t positions = x.elements() / (samples * channels);
  std::array<PixelScale, kMostChannels> scales;
  const tensor::DimIndex& index = call.index(x.shape()[1].name);
  for (int64_t c = 0; c < channels; ++c)  // zero at padding
    scales[static_cast<size_t>(c)] =
        index[c] < 0 ? PixelScale{0, 0} : pixel_scale(call.attributes, x.dtype(), index[c]);
  call.team.for_shares(samples, 1, [&](base::Range r, int) {
    for (int64_t n = r.begin; n < r.end; ++n) {
      float* to = reinterpret_cast<float*>(y.data) + n * positions * channels;
      const std::byte* from = x.data + n * positions * channels * tensor::size_of(x.dtype());
      if (x.dtype() == DType::u8) {
        transpose(reinterpret_cast<const uint8_t*>(from), to, positions, channels, scales.data());
      } else {
        transpose(reinterpret_cast<const float*>(from), to, positions, channels, scales.data());
      }
    }
  });
}

}  // namespace kintsugi::kernels::cpu
