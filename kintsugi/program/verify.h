// Checks a program by abstract execution.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Calls verify_messages(). Then runs every list of calls symbolically, tracking which buffer last wrote each byte (for
// enough micro-batches to cover all cases): every buffer must be inside its region at a multiple of its alignment, and
// every instruction must read what was last written there through the buffer that it names. Throws an InternalError
// that names list, body, instruction and buffer.
void verify(const Program& p);

}  // namespace kintsugi::program
