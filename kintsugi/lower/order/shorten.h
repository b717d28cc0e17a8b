// Lists of calls of training steps with fewer micro-batches, for the warm-up of the batch.
#pragma once

#include <cstdint>
#include <span>

#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// For each of these numbers, below that of the list "train", adds a list with the same bodies and slots: that of the
// last micro-batches of "train", renumbered from 0, of which the first overwrites the accumulators. Leaving out the
// calls of other micro-batches keeps every order, so that memory that is planned for all suffices for some.
void shorten(program::Program& p, std::span<const int64_t> micro_batches);

}  // namespace kintsugi::lower
