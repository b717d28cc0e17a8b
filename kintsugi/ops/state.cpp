// Reading, adding to and replacing what outlives a step, and handing out a value. The partitioner gives these their
// meaning.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

std::vector<OpRow> state_rows() {
  using graph::Role;
  return {{.kind = "state", .role = Role::read_state},
          {.kind = "accumulate",
           .role = Role::accumulate,
           .additive = true,
           .flat = true,
           .keeps_zero = true,
           .effect = true},
          {.kind = "assign", .role = Role::assign, .flat = true, .keeps_zero = true, .effect = true},
          {.kind = "output", .role = Role::output, .effect = true}};  // what the run reads, by the attribute "name"
}

}  // namespace kintsugi::ops
