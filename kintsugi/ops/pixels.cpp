// x [samples channels spatial...], bytes of an image or numbers -> y [samples spatial... channels], normalized per
// channel
#include <algorithm>

#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow pixels() {
  return {.kind = "pixels",
          .ins = {"x"},
          .outs = {"y"},
          .infer = [](Types ins, const Attributes& attributes) -> OutTypes {
            std::vector<tensor::Dim> dims = ins["x"].shape.dims();
            std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
            return {{Shape(dims), tensor::dtype_from(attributes.text("dtype"))}};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 2.0 * elements(ins); }};
}

}  // namespace kintsugi::ops
