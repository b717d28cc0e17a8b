// Which outputs reuse the memory of an input, in lists with several micro-batches under way at one time.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// An output reuses the memory of an input that no call of any micro-batch needs from then on: within one body, or if
// the bodies that touch the output all touch the input. Not if one of these waits for sends: that call may come before
// or after others, in different micro-batches.
void share_between_calls(program::Program& p, const program::CallList& list, const graph::OpTable& operations);

}  // namespace kintsugi::lower
