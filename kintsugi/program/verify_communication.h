// The rules of communication that one rank's program must follow, whatever the others do.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// For every body that a list calls: collectives and copies have the operands that verify_operands requires; each is
// waited for exactly once, messages in this call or another, the others in their body; until then nothing in the body
// touches its outputs, and nothing writes its inputs. Then calls verify_messages. InternalError naming list, `rank`
// (one of those that have the program), body and instruction.
void verify_communication(const Program& p, int rank = 0);

}  // namespace kintsugi::program
