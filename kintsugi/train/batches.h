// The samples that a rank reads, and what they contain.
#pragma once

#include "kintsugi/config/settings.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/share.h"

namespace kintsugi::train {

// The rows that a rank reads of each micro-batch: those it needs if they are an even share, else all.
samples::Share share_of(const run::Executor& executor, const config::Settings& settings);

// The parts of a sample, as required by the model's inputs.
samples::Parts parts_of(const config::Settings& settings);

}  // namespace kintsugi::train
