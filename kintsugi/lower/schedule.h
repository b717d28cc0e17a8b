// The order of calls: which body runs for which micro-batch.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Lists "train" (forward and backward of each micro-batch, then update), "evaluate", "prefill", "decode", as far as
// their bodies exist. The first micro-batch has bodies of its own, "forward.first" and "backward.first", which replace
// what the accumulators held; the others add.
void schedule(program::Program& p, int64_t micro_batches);

}  // namespace kintsugi::lower
