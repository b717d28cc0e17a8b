// average = decay * average + (1 - decay) * w, of the new weights; nothing where the update was skipped.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow moving_average() {
  return {.kind = "moving_average",
          .ins = {"average", "w", "finite"},
          .outs = {"average"},
          .family = "optimizer",
          .infer = like_first,
          .flops = per_element<3>,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"average", "average"}}};
}

}  // namespace kintsugi::ops
