// The row of Lion, in addition to rows.h.
#pragma once

#include "kintsugi/graph/op_row.h"

namespace kintsugi::ops {

graph::OpRow lion();

}  // namespace kintsugi::ops
