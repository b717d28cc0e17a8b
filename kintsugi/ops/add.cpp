#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

// The output has the dims of the largest operand; the others may lack some of them.
OutTypes infer(Types ins, const Attributes&) {
  const Type* largest = &ins[0];
  for (const Type& t : ins)
    if (t.shape.rank() > largest->shape.rank()) largest = &t;
  for (const Type& t : ins) {
    base::require(t.dtype == largest->dtype, "add", "{} and {}", name_of(t.dtype), name_of(largest->dtype));
    for (const tensor::Dim& d : t.shape)
      if (largest->shape.size(d.name) != d.size)
        throw base::InternalError("add", "{} and {}", to_string(t.shape), to_string(largest->shape));
  }
  return {*largest};
}

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  std::vector<ValueId> dx;
  for (ValueId x : op.ins) {
    const Type type = g.gradient_type(x);
    const bool same = g.shape(x) == g.shape(dy[0]);
    dx.push_back(same && type.dtype == g.type(dy[0]).dtype ? dy[0] : g.sum_to(dy[0], type));
  }
  return dx;
}

double flops(Types ins, Types outs, const Attributes&) {
  return static_cast<double>(ins.size() - 1) * elements(outs);
}

}  // namespace

OpRow add() {
  return {.kind = "add",
          .ins = {rest("x")},
          .outs = {"y"},
          .infer = infer,
          .grad = grad,
          .flops = flops,
          .additive = true,
          .variadic = true,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"y", "x"}}};
}

}  // namespace kintsugi::ops
