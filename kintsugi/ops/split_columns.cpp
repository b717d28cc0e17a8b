// The inverse of join_columns: of each x [above ... columns] as many y, its columns one after another, each
// [above ... below ...]; first those of the first x. What is stored or added is x in the dtype of y. It comes of
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
