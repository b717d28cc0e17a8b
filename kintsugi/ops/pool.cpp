// Pooling over windows: x [samples spatial... channels] -> y of the same dims. Window attributes: tensor/window.h.
// Padding is never the maximum; a mean divides by the size of the window, or with the attribute "exclude_padding" by
// the number of its positions within x.
#include "kintsugi/ops/rows.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::ops {
namespace {

OutTypes infer_pool(Types ins, const Attributes& attributes) {
  const Shape& x = ins["x"].shape;
  return {{windowed(x, attributes, x[x.rank() - 1]), ins["x"].dtype}};
}

// One operation per position of each window of `pooled`.
double flops_of_windows(const Type& pooled, const Attributes& attributes) {
  double n = static_cast<double>(pooled.shape.elements());
  for (const tensor::DimWindow& w : tensor::windows_of(attributes)) n *= static_cast<double>(w.window.kernel);
  return n;
}

double pool_flops(Types, Types outs, const Attributes& attributes) {
  return flops_of_windows(outs["y"], attributes);
}
double pool_grad_flops(Types ins, Types, const Attributes& attributes) {
  return flops_of_windows(ins["dy"], attributes);
}

}  // namespace

OpRow max_pool() {
  return {.kind = "max_pool",
          .ins = {"x"},
          .outs = {"y"},
          .infer = infer_pool,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.make("max_pool_grad", {op.in("x"), dy[0]}, {g.type(op.in("x"))}, op.attributes)[0]};
          },
          .flops = pool_flops,
          .keeps_zero = true,
          .windowed = {"x"},
          .light = true};
}

// dx: each dy goes to the first maximum of its window
OpRow max_pool_grad() {
  return {.kind = "max_pool_grad",
          .ins = {"x", "dy"},
          .outs = {"dx"},
          .family = "max_pool",
          .flops = pool_grad_flops,
          .keeps_zero = true,
          .windowed = {"x", "dx"}};
}

OpRow average_pool() {
  return {.kind = "average_pool",
          .ins = {"x"},
          .outs = {"y"},
          .infer = infer_pool,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.make("average_pool_grad", {dy[0]}, {g.type(op.in("x"))}, op.attributes)[0]};
          },
          .flops = pool_flops,
          .additive = true,
          .keeps_zero = true,
          .windowed = {"x"},
          .light = true};
}

OpRow average_pool_grad() {
  return {.kind = "average_pool_grad",
          .ins = {"dy"},
          .outs = {"dx"},
          .family = "average_pool",
          .flops = pool_grad_flops,
          .additive = true,
          .keeps_zero = true,
          .windowed = {"dx"}};
}

}  // namespace kintsugi::ops
