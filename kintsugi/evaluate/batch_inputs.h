// From a batch to the inputs of a program.
#pragma once

#include "kintsugi/data/batch.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

// Sets the inputs to a batch that begins at row `first` of the micro-batch. What the program does not read is passed
// over.
void set_inputs(const run::Executor::Inputs& inputs, const data::BatchView& batch, int64_t first,
                const data::RowSizes& sizes);

}  // namespace kintsugi::evaluate
