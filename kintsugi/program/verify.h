// An abstract run of a program, before the real one.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Runs every list of calls on the names of bytes alone (of micro-batches, the first three): every buffer stands inside
// its region at a multiple of kAlignment, and what an instruction reads is what was last written there, by the buffer
// that it names. InternalError naming list, body, instruction and buffer.
void verify(const Program& p);

}  // namespace kintsugi::program
