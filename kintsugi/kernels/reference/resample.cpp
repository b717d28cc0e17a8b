// Upsampling and adaptive pooling.
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"
#include "kintsugi/kernels/taps.h"

namespace kintsugi::kernels::reference {
namespace {

// y = the sum over taps of weight * x; `back`: from a tap's second position to its first.
template <typename Taps>
void resample(const KernelCall& call, const Taps& taps, bool back) {
  const std::vector<double> x = load(call.ins[0]);
  std::vector<double> y(static_cast<size_t>(call.outs[0].elements()), 0.0);
  const Shape& shape = call.ins[0].shape();
  const int64_t channels = width(shape), in = back ? taps.to : taps.from, out = back ? taps.from : taps.to;
  for (int64_t n = 0; n < shape[0].size; ++n)
    taps.for_each([&](int64_t i, int64_t o, double weight) {
      if (back) std::swap(i, o);
      for (int64_t c = 0; c < channels; ++c)
        y[static_cast<size_t>((n * out + o) * channels + c)] +=
            weight * x[static_cast<size_t>((n * in + i) * channels + c)];
    });
  store(call, 0, y);
}

}  // namespace

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

}  // namespace kintsugi::kernels::reference
