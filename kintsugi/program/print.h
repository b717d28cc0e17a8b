// A program as text: buffers with offsets, bodies, lists of calls, totals. Shapes are those of a rank, with the axes
// that split each dim: add[batch:2/data seq:8 embed:24] fp32 partial over tensor.
#pragma once

#include <string>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

std::string print(const Program& program);

// Bodies and lists of calls with their numbers, and the totals.
std::string print_outline(const Program& program);

// Totals alone: bytes by kind of state, arena by list, FLOPs by list, bytes sent by list, kind and axis.
std::string print_totals(const Program& program);

}  // namespace kintsugi::program
