// Upsampling and adaptive pooling: one thread sums a sample in fp32, and rounds once.
#include <algorithm>

#include "kintsugi/kernels/cpu/channel_rows.h"
#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/images.h"
#include "kintsugi/kernels/taps.h"

namespace kintsugi::kernels::cpu {
namespace {

int64_t sample_floats(const tensor::Shape& y) {
  return y[0].size == 0 ? 0 : (y.elements() / y[0].size + 15) / 16 * 16;
}

template <typename Taps>
void resample(const KernelCall& call, const Taps& taps, bool back) {
  const tensor::View &x = call.ins[0], &y = call.outs[0];
  const int64_t channels = x.shape()[x.shape().rank() - 1].size, in = (back ? taps.to : taps.from) * channels,
                out = (back ? taps.from : taps.to) * channels, size = sample_floats(y.shape()),
                x_bytes = tensor::size_of(x.dtype()), y_bytes = tensor::size_of(y.dtype());
  float* sums = Scratch(call.workspace).take<float>(size * call.team.size());
  call.team.for_shares(x.shape()[0].size, 1, [&](base::Range r, int thread) {
    float* mine = sums + thread * size;
    for (int64_t n = r.begin; n < r.end; ++n) {
      std::fill_n(mine, out, 0.0f);
      const std::byte* from = x.data + n * in * x_bytes;
      taps.for_each([&](int64_t i, int64_t o, double weight) {
        if (back) std::swap(i, o);
        add_weighted(x.dtype(), from + i * channels * x_bytes, static_cast<float>(weight), channels,
                     mine + o * channels);
      });
      narrow(y.dtype(), mine, y.data + n * out * y_bytes, out);
    }
  });
}

}  // namespace

bool resample_takes(const Operands& o) {
  return is_fast(o.ins[0].dtype) && is_fast(o.outs[0].dtype) && o.ins[0].shape.rank() <= UpsampleTaps::kMost + 2;
}

int64_t resample_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  scratch.take<float>(sample_floats(shapes.outs[0]->shape) * shapes.threads);
  return scratch.bytes();
}

void upsample(const KernelCall& call) {
  resample(call, UpsampleTaps(call, call.ins[0].shape(), call.outs[0].shape()), false);
}

void upsample_grad(const KernelCall& call) {
  resample(call, UpsampleTaps(call, call.outs[0].shape(), call.ins[0].shape()), true);
}

void adaptive_pool(const KernelCall& call) {
  resample(call, AdaptiveTaps(call.ins[0].shape(), call.outs[0].shape()), false);
}

void adaptive_pool_grad(const KernelCall& call) {
  resample(call, AdaptiveTaps(call.outs[0].shape(), call.ins[0].shape()), true);
}

}  // namespace kintsugi::kernels::cpu
