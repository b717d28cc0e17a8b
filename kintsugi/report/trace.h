// A simulated step as a trace for Perfetto (https://ui.perfetto.dev), in its protobuf format.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/simulate.h"

namespace kintsugi::report {

// A group of tracks for each stage: the kernels of its calls, and for each axis the transfers over it, on as many
// tracks as there are at one time. A flow goes from each message to where it is received. `simulated` has spans.
std::string trace(const std::vector<program::Program>& stages, program::Step step,
                  const simulate::Simulated& simulated);

}  // namespace kintsugi::report
