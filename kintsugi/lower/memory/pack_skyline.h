// Packing for item counts that are too large for a conflict matrix.
#pragma once

#include "kintsugi/lower/memory/pack_conflicts.h"

namespace kintsugi::lower {

// The offset of every item: longest-lived first, bottom up, each on top of everything below it while it is live.
std::vector<int64_t> pack_skyline(const Timeline& t);

}  // namespace kintsugi::lower
