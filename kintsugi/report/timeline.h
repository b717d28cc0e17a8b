// A picture of a simulated step.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/simulate.h"

namespace kintsugi::report {

// Returns an SVG of 1000 px width: a row per stage, with what it does when, and when its transfers are in flight.
// `simulated`: with spans.
std::string timeline(const std::vector<program::Program>& stages, program::Step step,
                     const simulate::Simulated& simulated);

}  // namespace kintsugi::report
