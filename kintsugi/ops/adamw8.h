// The row of AdamW with 8-bit moments, in addition to rows.h.
#pragma once

#include "kintsugi/graph/op_row.h"

namespace kintsugi::ops {

graph::OpRow adamw8();

}  // namespace kintsugi::ops
