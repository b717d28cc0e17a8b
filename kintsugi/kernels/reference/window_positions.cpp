#include "kintsugi/kernels/reference/window_positions.h"

#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::reference {

WindowPositions window_positions(const KernelCall& call, const tensor::Shape& x, const tensor::Shape& y) {
  WindowPositions p = {.samples = x[0].size,
                       .inputs = 1,
                       .outputs = 1,
                       .windows = 1,
                       .x_channels = x[x.rank() - 1].size,
                       .y_channels = y[y.rank() - 1].size,
                       .input = {0}};
  // Dim by dim: the table is [outputs so far][window positions so far].
  for (const auto& [dim, w] : tensor::windows_of(call.attributes)) {
    const tensor::DimIndex& index = call.window_index(dim);
    const int64_t in = x.size(dim), out = y.size(dim);
    std::vector<int64_t> longer(static_cast<size_t>(p.outputs * out * p.windows * w.kernel));
    for (int64_t o = 0; o < p.outputs; ++o)
      for (int64_t i = 0; i < out; ++i)
        for (int64_t k = 0; k < p.windows; ++k)
          for (int64_t j = 0; j < w.kernel; ++j) {
            const int64_t at = i * w.stride - w.low + j * w.dilation,
                          above = p.input[static_cast<size_t>(o * p.windows + k)];
            const bool absent = above < 0 || at < 0 || at >= in || index[at] < 0;
            longer[static_cast<size_t>(((o * out + i) * p.windows + k) * w.kernel + j)] = absent ? -1 : above * in + at;
          }
    p.input = std::move(longer);
    p.inputs *= in;
    p.outputs *= out;
    p.windows *= w.kernel;
  }
  return p;
}

}  // namespace kintsugi::kernels::reference
