// Operations that cost nothing in any layout: inputs, constants, repetition. Each consumer gets them as it needs them.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

std::vector<OpRow> free_rows() {
  return {{.kind = "input", .role = graph::Role::input, .outs = {"y"}, .free = true},
          {.kind = "fill", .outs = {rest("y")}, .free = true},
          {.kind = "broadcast", .ins = {"x"}, .outs = {"y"}, .free = true}};
}

}  // namespace kintsugi::ops
