// A chart of memory over a step.
#pragma once

#include <cstdint>
#include <string>

#include "kintsugi/program/program.h"

namespace kintsugi::report {

// Returns an SVG of 1000 px width: on the x axis the instructions of all calls of the list "train" (for long lists the
// calls, each at its peak), on the y axis the bytes of a rank: weights, gradients, optimizer and other states, which
// persist, and above them workspace, communication and activations. One dashed line marks the planned size, another the
// `limit` of a rank (0: unknown), which is only stated where it is more than twice as high. Below the axis: what the
// step does there, and a sentence on allocation and packing. `title`: the heading. Draws at most 4,000 steps.
std::string memory_picture(const program::Program& p, const std::string& title, int64_t limit = 0);

}  // namespace kintsugi::report
