// A simulated step as a picture.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/simulate.h"

namespace kintsugi::report {

// An SVG of 1000 px width: a row for each stage, what it does and when, and when its transfers are under way.
// `simulated`: with spans.
std::string timeline(const std::vector<program::Program>& stages, program::Step step,
                     const simulate::Simulated& simulated);

}  // namespace kintsugi::report
