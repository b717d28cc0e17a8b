#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow unary(std::string_view kind, graph::GradRule grad, graph::FlopsRule flops) {
  return {.kind = kind,
          .infer = like_first,
          .grad = grad,
          .flops = flops,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{0, 0}}};
}

OpRow unary_grad(std::string_view kind, std::string_view family, graph::FlopsRule flops) {
  return {.kind = kind,
          .family = family,
          .infer = like_first,
          .flops = flops,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{0, 1}}};
}

}  // namespace kintsugi::ops
