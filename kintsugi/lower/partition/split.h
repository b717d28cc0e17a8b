// Splits the program of all stages into one for each stage.
#pragma once

#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// By stage: its bodies, and the buffers and states that they touch. Names of bodies that every stage has once lose
// their number: "update.3" becomes "update".
std::vector<program::Program> split_by_stage(program::Program all, int stages);

}  // namespace kintsugi::lower
