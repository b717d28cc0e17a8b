// Which instructions may change places.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Whether some buffer of `a` may share bytes with one of `b`.
bool touches(const Program& p, const std::vector<BufferId>& a, const std::vector<BufferId>& b);

// Whether two instructions must stay in their order: one writes what the other reads or writes.
bool in_order(const Program& p, const Instruction& a, const Instruction& b);

}  // namespace kintsugi::program
