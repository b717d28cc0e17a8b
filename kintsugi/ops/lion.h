// Beside rows.h: the row of Lion.
#pragma once

#include "kintsugi/graph/op_row.h"

namespace kintsugi::ops {

graph::OpRow lion();

}  // namespace kintsugi::ops
