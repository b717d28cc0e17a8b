// Joins values to adjacent columns: any number of x, each [above ... below ...], where `above` are the dims that y has
// before `columns`, become y [above ... columns]. Introduced by lower/join_columns.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow join_columns() {
  return {.kind = "join_columns",
          .ins = {rest("x")},
          .outs = {"y"},
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .whole = {"columns"},
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
