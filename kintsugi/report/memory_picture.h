// A chart of memory over a step.
#pragma once

#include <cstdint>
#include <string>

#include "kintsugi/program/program.h"

namespace kintsugi::report {

// An SVG of 1000 px width: from left to right the instructions of all calls of the list "train" (for long lists the
// calls, each where it needs most), upwards the bytes of a rank: weights, gradients, optimizer and other states, which
// stay, and above them workspace, communication and activations. A dashed line is the planned size, another the
// `limit` of a rank (0: not known), which is only told where it is more than twice as high. Below the axis is what the
// step does then, and a sentence about what is allocated and how well it is packed. `title`: the heading. At most 4,000
// steps are drawn.
std::string memory_picture(const program::Program& p, const std::string& title, int64_t limit = 0);

}  // namespace kintsugi::report
