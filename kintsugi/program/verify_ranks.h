// An abstract run of the programs of all ranks together, before the real one: would any rank wait forever?
#pragma once

#include <span>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// One program for each rank of their mesh; ranks of one stage share it. Each is checked by verify_communication. Then
// every list is run on all ranks: a rank is a sequence of collectives and messages, in the order in which it enqueues
// them, and proceeds
// - past a collective when all members of its group have reached the same one (kind, value, bytes, dtype, reduction,
//   members, micro-batch; between ranks with the same buffers the same buffer);
// - past the start of a message when that before it in its channel has ended, which is when the peer has started the
//   other end; the n-th ends of a channel match;
// - past the wait for a message when it has ended.
// And each group is made by all its members.
//
// This is stricter than any backend, so what passes ends under each. A device starts the operations of all its
// communicators in one order, that in which they were enqueued (comm/device_groups takes no other): one starts when
// those before it have started, when those of its communicator have ended, and when all that was computed before it is
// done. So a message that cannot start yet holds back all that follows it, of whatever communicator, and two ranks that
// hold back what the other waits for would stand still, although each communicator alone is in order. Collectives are
// taken to hold the device until they end, as where they take all of it.
//
// Adjacent operations of different groups on one rank may be exchanged if that makes no cycle of ranks. Each group
// still sees its operations in one order, each operation has the same operands, so every value is the same. Two of one
// group may not.
//
// Cost: only as many ranks are run as differ. Take a factor of the mesh along which all ranks have the same program
// and no message is sent. Moving all ranks by one place along it maps the whole run onto itself: programs onto
// themselves, groups onto groups (they are cosets), peers onto peers. How far a rank gets does not depend on the order
// in which ranks are run, so ranks that differ along such factors only are always at the same place, and one of them
// represents all. If all ranks have one program without messages, nothing is left to run.
//
// InternalError: the list, the rank, its body, micro-batch and instruction, the kind, value, axes and ranks, which
// rank it waits for, and where that rank is.
void verify_ranks(std::span<const Program* const> programs);

// The same program on all ranks of its mesh, or one for each stage.
void verify_ranks(const Program& p);
void verify_ranks(const std::vector<Program>& stages);

}  // namespace kintsugi::program
