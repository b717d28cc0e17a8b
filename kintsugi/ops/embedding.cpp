#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

// tokens [batch seq], table [vocab embed] -> [batch seq embed]
OpRow embedding() {
  return {.kind = "embedding",
          .ins = {"tokens", "table"},
          .outs = {"y"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            std::vector<tensor::Dim> dims = ins["tokens"].shape.dims();
            dims.push_back(ins["table"].shape[1]);
            return {{Shape(dims), ins["table"].dtype}};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {kNone, g.make("embedding_grad", {op.in("tokens"), dy[0]}, {g.gradient_type(op.in("table"))})[0]};
          },
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .keeps_zero = true};
}

OpRow embedding_grad() {
  return {.kind = "embedding_grad",
          .ins = {"tokens", "dy"},
          .outs = {"dtable"},
          .family = "embedding",
          .flops = [](Types ins, Types, const Attributes&) { return static_cast<double>(ins["dy"].shape.elements()); },
          .keeps_zero = true,
          .accumulates = {"dtable"}};
}

}  // namespace kintsugi::ops
