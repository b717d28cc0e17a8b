// x [part ...] -> [...]: combines softmax statistics of several sets into those of their union.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow logsumexp() {
  return {.kind = "logsumexp",
          .ins = {"x"},
          .outs = {"y"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            const std::vector<tensor::Dim>& dims = ins[0].shape.dims();
            return {{Shape(std::vector<tensor::Dim>(dims.begin() + 1, dims.end())), ins[0].dtype}};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 10.0 * elements(ins); },
          .whole = {"part"}};
}

}  // namespace kintsugi::ops
