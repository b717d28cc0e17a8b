// The gradient of a convolution with respect to its input, as a separate operation ("deconvolution"; Dumoulin, Visin
// 2016, section 4): x [samples spatial... channels], w [kernel... filters channels] -> y [samples spatial... filters],
// where the windows of the attributes read y: each position of x adds to the positions of its window.
#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::ops {
namespace {

OutTypes infer_transposed(Types ins, const Attributes& attributes) {
  const Shape &x = ins["x"].shape, &w = ins["w"].shape;
  const std::vector<tensor::DimWindow> windows = tensor::windows_of(attributes);
  bool fits = w.rank() == windows.size() + 2 && x.rank() == w.rank() && w[w.rank() - 1] == x[x.rank() - 1];
  for (size_t i = 0; fits && i < windows.size(); ++i)
    fits = w[i].name == tensor::kernel_dim(windows[i].dim) && w[i].size == windows[i].window.kernel &&
           x[i + 1].name == windows[i].dim;
  if (!fits)
    throw base::InternalError("transposed_convolution", "{} and {} with {}", to_string(x), to_string(w),
                              to_string(attributes));
  std::vector<tensor::Dim> dims = x.dims();
  dims.back() = w[w.rank() - 2];
  for (size_t i = 0; i < windows.size(); ++i) {
    const tensor::Window& window = windows[i].window;
    dims[i + 1].size = window.reach(dims[i + 1].size) - window.low - window.high;
  }
  return {{Shape(dims), ins["x"].dtype}};
}

std::vector<ValueId> transposed_grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId x = op.in("x"), w = op.in("w");
  return {g.op("convolution", {dy[0], w}, op.attributes),
          g.make("convolution_grad_weight", {dy[0], x}, {g.gradient_type(w)}, op.attributes)[0]};
}

}  // namespace

OpRow transposed_convolution() {
  return {.kind = "transposed_convolution",
          .ins = {"x", "w"},
          .outs = {"y"},
          .infer = infer_transposed,
          .grad = transposed_grad,
          .flops =
              [](Types ins, Types, const Attributes&) {
                const Shape& w = ins["w"].shape;
                return 2.0 * elements(ins) * static_cast<double>(w.elements() / w[w.rank() - 1].size);
              },
          .cost_class = tensor::CostClass::product,
          .linear = true,
          .keeps_zero = true,
          .windowed = {"y"}};
}

}  // namespace kintsugi::ops
