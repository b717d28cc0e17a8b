// The product of two values, summed over every dim that the output lacks: all matrix products of a model.
#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

std::vector<Type> infer(Types ins, const Attributes& a) {
  std::vector<tensor::Dim> dims;
  for (const std::string& name : tensor::words(a.text("dims"))) {
    const int i = ins[0].shape.find(name);
    dims.push_back({name, i >= 0 ? ins[0].shape[static_cast<size_t>(i)].size : ins[1].shape.size(name)});
  }
  for (const tensor::Dim& d : ins[0].shape)
    base::require(!ins[1].shape.has(d.name) || ins[1].shape.size(d.name) == d.size, "contract", "{} and {}",
                  to_string(ins[0].shape), to_string(ins[1].shape));
  return {{Shape(dims), tensor::dtype_from(a.text("dtype"))}};
}

std::string names(const Shape& shape) {
  std::string text;
  for (const tensor::Dim& d : shape) text += (text.empty() ? "" : " ") + d.name;
  return text;
}

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId a = op.ins[0], b = op.ins[1];
  return {g.contract(dy[0], b, names(g.shape(a)), g.gradient_type(a).dtype),
          g.contract(a, dy[0], names(g.shape(b)), g.gradient_type(b).dtype)};
}

// 2 per multiplication and addition: over every dim of either operand.
double flops(Types ins, Types, const Attributes&) {
  double n = 2.0 * elements(ins);
  for (const tensor::Dim& d : ins[1].shape)
    if (!ins[0].shape.has(d.name)) n *= static_cast<double>(d.size);
  return n;
}

}  // namespace

OpRow contract() {
  return {.kind = "contract",
          .infer = infer,
          .grad = grad,
          .flops = flops,
          .linear = true,
          .keeps_zero = true,
          .accumulates = 1,
          .takes_bias = true};
}

}  // namespace kintsugi::ops
