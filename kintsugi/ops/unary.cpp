#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow unary(std::string_view kind, graph::GradRule grad, graph::FlopsRule flops) {
  return {.kind = kind,
          .ins = {"x"},
          .outs = {"y"},
          .infer = like_first,
          .grad = grad,
          .flops = flops,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"y", "x"}},
          .light = true};
}

OpRow unary_grad(std::string_view kind, std::string_view family, graph::FlopsRule flops) {
  return {.kind = kind,
          .ins = {"x", "dy"},
          .outs = {"dx"},
          .family = family,
          .infer = like_first,
          .flops = flops,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"dx", "dy"}}};
}

}  // namespace kintsugi::ops
