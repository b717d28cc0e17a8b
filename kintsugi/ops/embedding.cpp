#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

// tokens [batch seq], table [vocab embed] -> [batch seq embed]
OpRow embedding() {
  return {.kind = "embedding",
          .infer = [](Types ins, const Attributes&) -> std::vector<Type> {
            std::vector<tensor::Dim> dims = ins[0].shape.dims();
            dims.push_back(ins[1].shape[1]);
            return {{Shape(dims), ins[1].dtype}};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {kNone, g.make("embedding_grad", {op.ins[0], dy[0]}, {g.gradient_type(op.ins[1])})[0]};
          },
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .keeps_zero = true};
}

OpRow embedding_grad() {
  return {.kind = "embedding_grad",
          .family = "embedding",
          .flops = [](Types ins, Types, const Attributes&) { return static_cast<double>(ins[1].shape.elements()); },
          .keeps_zero = true,
          .accumulates = 1};
}

}  // namespace kintsugi::ops
