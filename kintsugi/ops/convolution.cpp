// x [samples spatial... channels], w [kernel... channels filters] -> y [samples spatial... filters], whose spatial dims
// have the names of x's and a window each (tensor/window.h). With "groups" above 1 a filter sees only the channels of
// its own group, and the channels of w have their own name.
//
// Two instructions may share the output of a convolution, so that positions that need no halo are computed while it
// travels (lower/order/split_interior). Their operands, windows and indices are those of the whole convolution.
// tensor::OutputPart (attributes "part", "part_dim", "part_begin", "part_end") gives the positions of the local block
// of y that each computes along one windowed dim; all other dims are whole:
//   part=inner: [part_begin, part_end). Reads only what their windows cover; other positions of x are not there yet
//   part=outer: the others, [0, part_begin) and [part_end, length), of which at most one is empty
// A kernel with kernels::Capability::parts writes these positions and no others. The workspace of each instruction is
// planned from its own attributes.
#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::ops {
namespace {

OutTypes infer(Types ins, const Attributes& attributes) {
  const Shape &x = ins["x"].shape, &w = ins["w"].shape;
  const std::vector<tensor::DimWindow> windows = tensor::windows_of(attributes);
  const int64_t groups = attributes.integer_or("groups", 1);
  bool fits = w.rank() == windows.size() + 2 && x.rank() == w.rank() && w[w.rank() - 1].size % groups == 0 &&
              w[w.rank() - 2].size * groups == x[x.rank() - 1].size &&
              (groups > 1 || w[w.rank() - 2].name == x[x.rank() - 1].name);
  for (size_t i = 0; fits && i < windows.size(); ++i)
    fits = w[i].name == tensor::kernel_dim(windows[i].dim) && w[i].size == windows[i].window.kernel;
  if (!fits)
    throw base::InternalError("convolution", "{} and {} with {}", to_string(x), to_string(w), to_string(attributes));
  return {{windowed(x, attributes, w[w.rank() - 1]), ins["x"].dtype}};
}

// False for values that are computed from inputs and have no gradient themselves, such as an image from its bytes.
bool passes_gradient(const Graph& g, ValueId x) {
  const Op& maker = g.op_at(static_cast<size_t>(g.value(x).op));
  return maker.role() != graph::Role::compute || maker.row->grad;
}

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId x = op.in("x"), w = op.in("w");
  return {passes_gradient(g, x) ? g.make("convolution_grad_input", {dy[0], w}, {g.type(x)}, op.attributes)[0] : kNone,
          g.make("convolution_grad_weight", {x, dy[0]}, {g.gradient_type(w)}, op.attributes)[0]};
}

// A multiply-add per weight of a filter at each element of y.
double flops_of(const Type& y, const Type& w) {
  return 2.0 * static_cast<double>(y.shape.elements()) *
         static_cast<double>(w.shape.elements() / std::max<int64_t>(w.shape[w.shape.rank() - 1].size, 1));
}

}  // namespace

OpRow convolution() {
  return {.kind = "convolution",
          .ins = {"x", "w"},
          .outs = {"y"},
          .infer = infer,
          .grad = grad,
          .flops = [](Types ins, Types outs, const Attributes&) { return flops_of(outs["y"], ins["w"]); },
          .cost_class = tensor::CostClass::product,
          .linear = true,
          .keeps_zero = true,
          .windowed = {"x"}};
}

// dy, w -> dx
OpRow convolution_grad_input() {
  return {.kind = "convolution_grad_input",
          .ins = {"dy", "w"},
          .outs = {"dx"},
          .family = "convolution",
          .flops = [](Types ins, Types, const Attributes&) { return flops_of(ins["dy"], ins["w"]); },
          .cost_class = tensor::CostClass::product,
          .linear = true,
          .keeps_zero = true,
          .windowed = {"dx"}};
}

// x, dy -> dw
OpRow convolution_grad_weight() {
  return {.kind = "convolution_grad_weight",
          .ins = {"x", "dy"},
          .outs = {"dw"},
          .family = "convolution",
          .flops = [](Types ins, Types outs, const Attributes&) { return flops_of(ins["dy"], outs["dw"]); },
          .cost_class = tensor::CostClass::product,
          .linear = true,
          .keeps_zero = true,
          .windowed = {"x"},
          .accumulates = {"dw"}};
}

}  // namespace kintsugi::ops
