// The product of two values, summed over every dim that the output lacks: all matmuls of a model. lower/fuse introduces
// the operand and output x with the attribute "epilogue", and the operand `added`; lower/join_columns introduces the
// attribute "first". An operand b in int8 codes is b times `scale`, whose dims are the last of b (Dettmers et al. 2022,
// "LLM.int8()", section 3.1).
#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

OutTypes infer(Types ins, const Attributes& attributes) {
  const Shape &a = ins["a"].shape, &b = ins["b"].shape;
  base::require((ins["b"].dtype == tensor::DType::i8) == ins.has("scale"), "contract", "int8 codes need scales");
  std::vector<tensor::Dim> dims;
  for (const std::string& name : tensor::words(attributes.text("dims")))
    dims.push_back({name, a.has(name) ? a.size(name) : b.size(name)});
  for (const tensor::Dim& d : a)
    if (b.has(d.name) && b.size(d.name) != d.size)
      throw base::InternalError("contract", "{} and {}", to_string(a), to_string(b));
  return {{Shape(dims), tensor::dtype_from(attributes.text("dtype"))}};
}

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId a = op.in("a"), b = op.in("b"), bias = op.in("bias"), scale = op.in("scale");
  const ValueId dbias = bias == kNone ? kNone : g.sum_to(dy[0], g.gradient_type(bias));
  if (scale != kNone) {  // codes have no gradient
    const Attributes attributes = {{"dims", tensor::names(g.shape(a))},
                                   {"dtype", std::string(tensor::name_of(g.gradient_type(a).dtype))}};
    return {g.op("contract", {dy[0], b, kNone, kNone, kNone, scale}, attributes), kNone, dbias, kNone, kNone, kNone};
  }
  return {g.contract(dy[0], b, tensor::names(g.shape(a)), g.gradient_type(a).dtype),
          g.contract(a, dy[0], tensor::names(g.shape(b)), g.gradient_type(b).dtype),
          dbias,
          kNone,
          kNone,
          kNone};
}

// Two per multiply-add, over every dim of either operand.
double flops(Types ins, Types, const Attributes&) {
  double n = 2.0 * elements(ins);
  for (const tensor::Dim& d : ins["b"].shape)
    if (!ins["a"].shape.has(d.name)) n *= static_cast<double>(d.size);
  return n;
}

}  // namespace

OpRow contract() {
  return {.kind = "contract",
          .ins = {"a", "b", optional("bias"), optional("x"), optional("added"), optional("scale")},
          .outs = {"y", optional("x")},
          .infer = infer,
          .grad = grad,
          .flops = flops,
          .cost_class = tensor::CostClass::product,
          .linear = true,
          .keeps_zero = true,
          .accumulates = {"y"},
          .narrows = {"y"}};
}

}  // namespace kintsugi::ops
