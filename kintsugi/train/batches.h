// The samples that a rank reads, and what they hold.
#pragma once

#include "kintsugi/config/settings.h"
#include "kintsugi/data/batch.h"
#include "kintsugi/data/share.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::train {

// The rows that a rank reads of each micro-batch: those that it needs if they are an even part, else all of them.
data::Share share_of(const run::Executor& executor, const config::Settings& settings);

// What a sample of the model holds: all that its inputs may ask for.
data::RowSizes row_of(const config::Settings& settings);

}  // namespace kintsugi::train
