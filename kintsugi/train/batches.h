// The samples that a rank reads, and what they hold.
#pragma once

#include "kintsugi/config/settings.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/share.h"

namespace kintsugi::train {

// The rows that a rank reads of each micro-batch: those that it needs if they are an even part, else all of them.
samples::Share share_of(const run::Executor& executor, const config::Settings& settings);

// What a sample of the model holds: what its inputs ask for.
samples::Parts parts_of(const config::Settings& settings);

}  // namespace kintsugi::train
