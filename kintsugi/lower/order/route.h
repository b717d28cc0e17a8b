// Device: how ranks exchange data, and what is captured.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// The exchange available to the ranks of a run, and whether its steps may be captured.
struct Route {
  program::Exchange exchange = program::Exchange::in_streams;
  bool captured = true;
};

// Sets Program::exchange, and for each list of calls its staged inputs, whether it is captured, and grouped launches.
// Steps whose transfers go through the host are not captured, since the host takes part in each. No-op for the host.
void route(program::Program& p, const Route& how);

}  // namespace kintsugi::lower
