// The communication rules that the program of one rank must satisfy by itself.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// For every body that a list calls: collectives and copies have the operands that verify_operands() requires; each is
// waited for exactly once, messages in any call, the others in the same body; until then nothing in the body touches
// its outputs or writes its inputs. Then calls verify_messages(). Throws an InternalError that names list, `rank` (one
// that runs the program), body and instruction.
void verify_communication(const Program& p, int rank = 0);

}  // namespace kintsugi::program
