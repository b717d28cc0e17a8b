// Device: where the rank's stream waits for transfers, and which transfers wait for the stream.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Sets the waits and `unordered` of DeviceOrder for each list of calls of a program with offsets and staged inputs.
//
// A wait moves from its instruction to the first later one that touches memory of the transfer, to the next copy of
// inputs, or to the end of the list: until then a wait for a newer transfer of the same queue may make it redundant. A
// transfer of the same queue needs no wait, since the queue is in order. Waits at one position are in descending order
// of their starts. A transfer is unordered if, since its queue last waited for the stream, the stream has not touched
// its memory other than to read what it reads.
//
// If ranks exchange through the host, each wait stays at its instruction. No-op for the host.
void place_waits(program::Program& p);

}  // namespace kintsugi::lower
