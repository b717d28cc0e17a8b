// Exports a simulated step as a trace for Perfetto (https://ui.perfetto.dev), in its protobuf format.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/simulate.h"

namespace kintsugi::report {

// A group of tracks per stage: the kernels of its calls, and for each axis its transfers, on as many tracks as are
// concurrently in flight. A flow leads from each message to its receive. `simulated` has spans.
std::string trace(const std::vector<program::Program>& stages, program::Step step,
                  const simulate::Simulated& simulated);

}  // namespace kintsugi::report
