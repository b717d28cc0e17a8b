// On a device: how ranks exchange data, and what is captured.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// The exchange that the ranks of a run have, and whether its steps may be captured.
struct Route {
  program::Exchange exchange = program::Exchange::in_streams;
  bool captured = true;
};

// Sets Program::exchange, and for each list of calls its staged inputs, whether it is captured, and that groups are
// launched as one. Steps whose transfers go through the host are not captured: the host takes part in each. Does
// nothing for the host.
void route(program::Program& p, const Route& how);

}  // namespace kintsugi::lower
