// Checks a program by an abstract run.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Calls verify_messages. Then runs every list of calls symbolically, recording which buffer wrote each byte (for
// enough micro-batches to cover all cases): every buffer is inside its region at a multiple of its alignment, and what
// an instruction reads is what was last written there through the buffer that it names. InternalError naming list,
// body, instruction and buffer.
void verify(const Program& p);

}  // namespace kintsugi::program
