// The rows of AdamW with narrow moments, in addition to rows.h.
#pragma once

#include "kintsugi/graph/op_row.h"

namespace kintsugi::ops {

graph::OpRow adamw8();
graph::OpRow adamw16();

}  // namespace kintsugi::ops
