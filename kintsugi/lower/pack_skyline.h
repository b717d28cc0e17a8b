// For pack(), where the items are too many to know of each pair whether they meet.
#pragma once

#include "kintsugi/lower/pack_conflicts.h"

namespace kintsugi::lower {

// The offset of every item: those that live longest first, from the bottom up, each on top of what stands below it
// while it lives.
std::vector<int64_t> pack_skyline(const Timeline& t);

}  // namespace kintsugi::lower
