// Scores per sample from the statistics of the head.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

// lse, target, labels, top: [batch seq] -> log_likelihood, count, misses: [batch] fp64
OpRow sample_scores() {
  return {.kind = "sample_scores",
          .ins = {"lse", "target", "labels", "top"},
          .outs = {"log_likelihood", "count", "misses"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            const Type sum = {without(ins["labels"].shape, "seq"), DType::f64};
            return {sum, sum, sum};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 3.0 * elements(ins); },
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
