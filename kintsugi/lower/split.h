// The program of all stages together becomes one for each stage.
#pragma once

#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// By stage: its bodies, and the buffers and states that they touch. What every stage has once loses its number:
// "update.3" becomes "update".
std::vector<program::Program> split_by_stage(const program::Program& all, int stages);

}  // namespace kintsugi::lower
