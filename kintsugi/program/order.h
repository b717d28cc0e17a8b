// Which memory an instruction touches, and which instructions may be reordered.
#pragma once

#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// The roots that an instruction reads or writes, ascending, without duplicates. Excludes its workspace.
std::vector<BufferId> roots_of(const Program& p, const Instruction& i);

// Whether some buffer of `a` may share bytes with one of `b`.
bool touches(const Program& p, const std::vector<BufferId>& a, const std::vector<BufferId>& b);

// Whether two instructions must keep their order: one writes what the other reads or writes.
bool in_order(const Program& p, const Instruction& a, const Instruction& b);

}  // namespace kintsugi::program
