// Reading, accumulating into and replacing states, and producing an output. The partitioner defines their effect.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

std::vector<OpRow> state_rows() {
  using graph::Role;
  return {{.kind = "state", .role = Role::read_state, .outs = {"y"}},
          // levels: sums that wait to be added in a tree
          {.kind = "accumulate",
           .role = Role::accumulate,
           .ins = {"x"},
           .outs = {"y", rest("levels")},
           .additive = true,
           .flat = true,
           .keeps_zero = true,
           .effect = true},
          {.kind = "assign", .role = Role::assign, .ins = {"x"}, .flat = true, .keeps_zero = true, .effect = true},
          {.kind = "output",
           .role = Role::output,
           .ins = {"x"},
           .effect = true}};  // read by the run, by the attribute "name"
}

}  // namespace kintsugi::ops
