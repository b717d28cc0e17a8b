#include "kintsugi/kernels/pixel_scale.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

// x: [samples channels spatial...], y: [samples spatial... channels]
void pixels(const KernelCall& call) {
  const View &x_view = call.ins[0], &y_view = call.outs[0];
  std::vector<double> x;
  if (x_view.dtype() == tensor::DType::u8) {
    for (uint8_t byte : x_view.as<uint8_t>()) x.push_back(byte);
  } else {
    x = load(x_view);
  }
  const Shape& shape = y_view.shape();
  const std::vector<int64_t> from = offsets(shape, x_view.shape()),
                             channel = global_of_local(call.index(shape[shape.rank() - 1].name));
  std::vector<PixelScale> scales;
  for (const int64_t c : channel)
    scales.push_back(c < 0 ? PixelScale{} : pixel_scale(call.attributes, x_view.dtype(), c));
  std::vector<double> y(from.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t c = i % channel.size();
    if (channel[c] < 0) continue;  // zero at padding
    const PixelScale& s = scales[c];
    y[i] = x[static_cast<size_t>(from[i])] * s.scale + s.shift;
  }
  store(call, 0, y);
}

}  // namespace kintsugi::kernels::reference
