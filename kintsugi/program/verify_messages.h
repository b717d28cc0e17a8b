// Messages and gradient reductions, from the call that starts them to the call that waits for them.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Each message of a list, and each collective that a later call awaits, is started once and then waited for once; in
// between, in any call, no instruction and no input filled by the run writes the bytes that it reads, and none reads or
// writes the bytes of its output. Within the starting body, collectives are checked by verify_communication() instead.
// Throws an InternalError that names list, `rank` (one that runs the program), body, micro-batch, instruction and
// message.
void verify_messages(const Program& p, int rank);

}  // namespace kintsugi::program
