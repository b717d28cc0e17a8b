// An abstract run of the programs of all ranks together, before the real one: would any rank wait forever?
#pragma once

#include <span>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// One program for each rank of their mesh; ranks of one role share it. Each is checked by verify_communication. Then
// every list is run on all ranks: a rank is a sequence of collectives, in the order in which it enqueues them, and goes
// on only when the one it is at is done: when all members of its group are at the same one (kind, value, bytes, dtype,
// reduction, members, micro-batch; between ranks with the same buffers the same buffer). A message is enqueued without
// waiting; the wait for it ends when its peer has enqueued the other end, the n-th of a channel being that of the n-th.
// That is more than any backend asks for: a send waits for its receive, and a device takes the collectives of all its
// groups one after the other. So what passes ends under every backend. And each group is made by all its members.
//
// What may be exchanged: neighbours of different groups on one rank, where no circle of ranks comes of it. Each group
// still sees its operations in one order, each operation has the operands that it had, so every value is the same. Two
// of one group may not.
//
// Cost: only as many ranks are run as differ. Take a factor of the mesh along which all ranks have the same program and
// no message goes. To move all ranks by one place along it maps the whole run onto itself: programs onto themselves,
// groups onto groups (they are cosets), peers onto peers. How far a rank comes does not depend on the order in which
// ranks are looked at, so ranks that differ along such factors only are always at the same place, and one of them
// stands for all. Where all ranks have one program without messages, nothing is left to run.
//
// InternalError: the list, the rank, its body, micro-batch and instruction, the kind, value, axes and ranks, and who is
// waited for, and where that one is.
void verify_ranks(std::span<const Program* const> programs);

// The same program on all ranks of its mesh, or one for each stage.
void verify_ranks(const Program& p);
void verify_ranks(const std::vector<Program>& stages);

}  // namespace kintsugi::program
