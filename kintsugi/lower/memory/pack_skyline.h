// For pack(), with too many items to store for each pair whether they are live together.
#pragma once

#include "kintsugi/lower/memory/pack_conflicts.h"

namespace kintsugi::lower {

// The offset of every item: those that are live longest first, from the bottom up, each on top of everything below it
// while it is live.
std::vector<int64_t> pack_skyline(const Timeline& t);

}  // namespace kintsugi::lower
