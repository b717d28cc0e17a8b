// Prints a program: buffers with offsets, bodies, lists of calls, totals. Shapes are per rank, with the axes that split
// each dim: add[batch:2/data seq:8 embed:24] fp32 partial over tensor.
#pragma once

#include <string>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

std::string print(const Program& program);

// Bodies and call lists with their numbers, and the totals.
std::string print_outline(const Program& program);

// Only totals: bytes by kind of state, arena by list, FLOPs by list, bytes sent by list, kind and axis.
std::string print_totals(const Program& program);

}  // namespace kintsugi::program
