// What one rank's program must keep of its own, whatever the others do.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Of every body that a list calls: collectives have the operands, sizes, dtypes and group that their kind asks for, in
// place only where a communicator allows it, on every rank; each is waited for exactly once, in its body; until then
// nothing touches what it makes, and nothing writes what it reads. InternalError naming list, `rank` (one of those that
// have the program), body and instruction.
void verify_communication(const Program& p, int rank = 0);

}  // namespace kintsugi::program
