// An abstract run of a program, before the real one.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Calls verify_messages. Then runs every list of calls on the names of bytes alone (of as many micro-batches as show
// all that happens): every buffer is inside its region at a multiple of kAlignment, and what an instruction reads is
// what was last written there, by the buffer that it names. InternalError naming list, body, instruction and buffer.
void verify(const Program& p);

}  // namespace kintsugi::program
