// Reuse of an input's memory by an output, in lists with several micro-batches in flight.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// An output reuses the memory of an input that no call of any micro-batch needs afterwards: within one body, or if all
// bodies that touch the output also touch the input. Not if one of these waits for sends: that call may come before or
// after others, depending on the micro-batch.
void share_between_calls(program::Program& p, const program::CallList& list, const graph::OpTable& operations);

}  // namespace kintsugi::lower
