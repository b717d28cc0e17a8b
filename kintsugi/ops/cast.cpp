#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow cast() {
  return {.kind = "cast",
          .ins = {"x"},
          .outs = {"y"},
          .infer = [](Types ins, const Attributes& a) -> OutTypes {
            return {{ins[0].shape, tensor::dtype_from(a.text("dtype"))}};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.op("cast", {dy[0]}, {{"dtype", std::string(name_of(g.gradient_type(op.ins[0]).dtype))}})};
          },
          .flat = true,
          .keeps_zero = true,
          .converts_dtype = true};
}

}  // namespace kintsugi::ops
