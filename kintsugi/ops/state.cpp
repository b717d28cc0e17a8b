// Reading, adding to and replacing what outlives a step, and handing out a value. The partitioner gives these their
// meaning.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

std::vector<OpRow> state_rows() {
  return {{.kind = "state"},
          {.kind = "accumulate", .additive = true, .flat = true, .keeps_zero = true, .effect = true},
          {.kind = "assign", .flat = true, .keeps_zero = true, .effect = true},
          {.kind = "output", .effect = true}};  // what the run reads, by the attribute "name"
}

}  // namespace kintsugi::ops
