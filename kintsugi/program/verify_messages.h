// Messages, and sums of gradients, from the call that starts them to the call that waits for them.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Each message of a list, and each collective that a later call awaits, is started once and waited for once, in this order, and between the two, in any call, no
// instruction, and no input that the run fills, writes the bytes that it reads, and none reads or writes the bytes of
// its output. InternalError naming list, `rank` (one of those that have the program), body, micro-batch, instruction,
// and the message. Of a collective, what its own body does meanwhile is left to verify_communication.
void verify_messages(const Program& p, int rank);

}  // namespace kintsugi::program
