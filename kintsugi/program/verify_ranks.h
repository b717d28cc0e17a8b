// Abstract execution of the programs of all ranks together, before the real one, to detect deadlocks.
#pragma once

#include <span>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// One program per rank of the mesh; ranks of a stage share it. Each is checked by verify_communication(). Then every
// list is run on all ranks: a rank is a sequence of collectives and messages, in the order in which it enqueues them,
// and proceeds
//  - past a collective when all members of its group have reached the same one (kind, value, bytes, dtype, reduction,
//    members, micro-batch; between ranks with the same buffers the same buffer);
//  - past the start of a message when the previous one in its channel has completed, that is, when the peer has started
//    the other end; the n-th ends of a channel match;
//  - past the wait for a message when it has completed.
// Each group must also be created by all of its members.
//
// This is stricter than any backend, so a program that passes does not deadlock on any. A device starts the operations
// of all its communicators in the single order in which they were enqueued (comm/device_groups accepts no other): an
// operation starts when those before it have started, those of its communicator have completed, and all earlier
// computation is done. So a message that cannot start yet holds back everything after it, on any communicator, and two
// ranks that hold back what the other waits for would deadlock although each communicator alone is in order.
// Collectives are assumed to occupy the device until they complete.
//
// Adjacent operations of different groups on one rank may be exchanged if that creates no cycle of ranks: each group
// still sees its operations in one order with the same operands, so every value is the same. Two operations of one
// group may not.
//
// Cost: only ranks that differ are run. Consider a factor of the mesh along which all ranks have the same program and
// no message is sent. Shifting all ranks by one position along it maps the run onto itself: programs onto themselves,
// groups onto groups (they are cosets), peers onto peers. A rank's progress does not depend on the order in which ranks
// are run, so ranks that differ only along such factors are always at the same position, and one of them represents
// all. If all ranks have one program without messages, nothing is left to run.
//
// Throws an InternalError that names the list, the rank, its body, micro-batch and instruction, the kind, value, axes
// and ranks, the rank it waits for, and the position of that rank.
void verify_ranks(std::span<const Program* const> programs);

// The same program on all ranks of its mesh, or one per stage.
void verify_ranks(const Program& p);
void verify_ranks(const std::vector<Program>& stages);

}  // namespace kintsugi::program
