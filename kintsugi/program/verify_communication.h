// What one rank's program must keep of its own, whatever the others do.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Of every body that a list calls: collectives and copies have operands as verify_operands asks for; each is waited for
// exactly once, messages in this call or another, the others in their body; until then nothing in the body touches what
// it makes, and nothing writes what it reads. Then calls verify_messages. InternalError naming list, `rank` (one of
// those that have the program), body and instruction.
void verify_communication(const Program& p, int rank = 0);

}  // namespace kintsugi::program
