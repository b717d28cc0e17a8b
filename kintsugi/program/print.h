// A program as text: buffers with offsets, bodies, lists of calls, totals.
#pragma once

#include <string>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

std::string print(const Program& program);

// "fill buffers 3 MiB ..." totals alone: bytes by kind of state, arena by list, FLOPs by list.
std::string print_totals(const Program& program);

}  // namespace kintsugi::program
