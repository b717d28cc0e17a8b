// Which outputs take the memory of an input, where several micro-batches are under way at one time.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// An output takes the memory of an input that no call of any micro-batch needs from then on: within one body, or where
// the bodies that touch the output all touch the input. Not where one of these waits for what was sent: that call may
// come before or after others, in one micro-batch or another.
void share_between_calls(program::Program& p, const program::CallList& list, const graph::OpTable& operations);

}  // namespace kintsugi::lower
