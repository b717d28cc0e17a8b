// Splits the program of all stages into one per stage.
#pragma once

#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// [stage]: its bodies, and the buffers and states that they touch. Bodies that every stage has exactly once lose their
// number: "update.3" becomes "update".
std::vector<program::Program> split_by_stage(program::Program all, int stages);

}  // namespace kintsugi::lower
