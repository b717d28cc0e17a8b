// Zeros padding by selection: x where every index is a position of the whole, 0 where one is -1.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow mask() {
  return {.kind = "mask",
          .ins = {"x"},
          .outs = {"y"},
          .infer = like_first,
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .additive = true,
          .keeps_zero = true,
          .in_place = {{"y", "x"}}};
}

}  // namespace kintsugi::ops
