// Operations that are free in any layout: inputs, constants, broadcasts. Each consumer gets them as it needs them.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

std::vector<OpRow> free_rows() {
  return {{.kind = "input", .role = graph::Role::input, .outs = {"y"}, .free = true},
          {.kind = "fill", .outs = {rest("y")}, .free = true},
          {.kind = "broadcast", .ins = {"x"}, .outs = {"y"}, .free = true}};
}

}  // namespace kintsugi::ops
