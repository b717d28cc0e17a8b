// A program as text with every field of every part, for dump_programs: two programs are the same where their texts are.
#pragma once

#include <string>

#include "kintsugi/program/program.h"

namespace kintsugi::tests {

// A line for each axis, buffer, state, body, instruction, list and call. "name=value"; what is empty, 0, or -1 where
// that means none, is left out.
std::string program_text(const program::Program& p);

}  // namespace kintsugi::tests
