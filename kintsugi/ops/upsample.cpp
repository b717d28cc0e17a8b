// x [samples spatial... channels] -> y of the same dims, longer by integer factors. The attribute "mode": "nearest"
// repeats, "linear" interpolates between the centers of positions, with the ends repeated. Windows are as for
// transposed_convolution: position i of x adds to the positions of its window, which set_upsample() defines. Attributes
// "positions_D": the positions of x along a dim D.
#include "kintsugi/ops/rows.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::ops {
namespace {

OutTypes infer_upsampled(Types ins, const Attributes& attributes) {
  std::vector<tensor::Dim> dims = ins["x"].shape.dims();
  for (tensor::Dim& dim : dims)
    for (const tensor::DimWindow& w : tensor::windows_of(attributes))
      if (w.dim == dim.name) dim.size *= w.window.stride;
  return {{Shape(dims), ins["x"].dtype}};
}

}  // namespace

void set_upsample(Attributes& attributes, std::string_view mode, const Shape& x,
                  const std::vector<std::pair<std::string, int64_t>>& factors) {
  std::vector<tensor::DimWindow> windows;
  for (const auto& [dim, factor] : factors) {
    tensor::Window w = {.kernel = factor, .stride = factor};
    if (mode == "linear") {  // positions whose center is nearer than one position of x
      w.kernel = factor % 2 == 0 ? 2 * factor : 2 * factor - 1;
      w.low = factor / 2;
      w.high = w.kernel - factor - w.low;
    }
    windows.push_back({dim, w});
    attributes.set("positions_" + dim, x.size(dim));
  }
  tensor::set_windows(attributes, windows);
  attributes.set("mode", std::string(mode));
}

OpRow upsample() {
  return {.kind = "upsample",
          .ins = {"x"},
          .outs = {"y"},
          .infer = infer_upsampled,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.make("upsample_grad", {dy[0]}, {g.type(op.in("x"))}, op.attributes)[0]};
          },
          .flops = [](Types, Types outs, const Attributes&) { return 8.0 * elements(outs); },
          .additive = true,
          .keeps_zero = true,
          .windowed = {"y"},
          .light = true};
}

OpRow upsample_grad() {
  return {.kind = "upsample_grad",
          .ins = {"dy"},
          .outs = {"dx"},
          .family = "upsample",
          .flops = [](Types ins, Types, const Attributes&) { return 8.0 * elements(ins); },
          .additive = true,
          .keeps_zero = true,
          .windowed = {"dy"}};
}

}  // namespace kintsugi::ops
