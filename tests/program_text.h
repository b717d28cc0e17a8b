// A program as text with every field of every part, for dump_programs: two programs are equal if their texts are.
#pragma once

#include <string>

#include "kintsugi/program/program.h"

namespace kintsugi::tests {

// A line for each axis, buffer, state, body, instruction, list and call: "name=value"; empty values, 0, and -1 for none
// are left out.
std::string program_text(const program::Program& p);

}  // namespace kintsugi::tests
