// Reading, adding to and replacing what outlives a step. The partitioner gives these their meaning.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

std::vector<OpRow> state_rows() {
  return {{.kind = "state"},
          {.kind = "accumulate", .additive = true, .flat = true, .effect = true},
          {.kind = "assign", .flat = true, .effect = true}};
}

}  // namespace kintsugi::ops
