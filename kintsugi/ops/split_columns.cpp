// The inverse of join_columns: each x [above ... columns] is split into equally many y, its columns in order, each
// [above ... below ...]; those of the first x come first. Stores or accumulates x in the dtype of y. Introduced by
// lower/join_gradients.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow split_columns() {
  return {.kind = "split_columns",
          .ins = {rest("x")},
          .outs = {rest("y")},
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .whole = {"columns"},
          .keeps_zero = true,
          .accumulates = {"y"}};
}

}  // namespace kintsugi::ops
