// Maps a batch to the inputs of a program.
#pragma once

#include <span>

#include "kintsugi/program/program.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/samples/batch.h"

namespace kintsugi::evaluate {

// Throws InternalError unless a step of the programs of all stages reads `parts`: each input is a part, with its type
// and the shape of a sample, and each non-optional part is an input.
void require_inputs(std::span<const program::Program> stages, program::Step step, const samples::Parts& parts);

// Sets the inputs of this stage to a batch that begins at row `first` of the micro-batch. Skips parts that only other
// stages read.
void set_inputs(const run::Executor::Inputs& inputs, const samples::BatchView& batch, int64_t first);

}  // namespace kintsugi::evaluate
