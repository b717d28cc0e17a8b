// What a rank enqueues on a device for a list of calls in addition to the instructions of its bodies: copies of inputs,
// and waits, which may be later than the wait instructions (lower/place_waits).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/program/instruction.h"

namespace kintsugi::program {

// An instruction of a call of a list.
struct Position {
  int call = 0;
  int instruction = 0;

  auto operator<=>(const Position&) const = default;
};
// A value of Position::instruction: before the inputs of the call are copied.
constexpr int kBeforeInputs = -1;

// A wait instruction, and the instruction before which the rank's stream waits. before.call equal to the number of
// calls: at the end of the list.
struct PlacedWait {
  Position wait, before;

  bool operator==(const PlacedWait&) const = default;
};

// An input copied to its buffer before the first call that reads it; `offset` is relative to the staging area.
struct StagedInput {
  size_t call = 0;  // in the list
  BufferId buffer = kNoBuffer;
  int64_t offset = 0;

  bool operator==(const StagedInput&) const = default;
};

struct DeviceOrder {
  std::vector<StagedInput> inputs;  // in the order of calls
  std::vector<PlacedWait> waits;    // in enqueue order, ascending in `before`
  // Collectives and messages that need not follow what the rank's stream enqueued before them, ascending. All others
  // wait for it.
  std::vector<Position> unordered;
  bool joined = false;    // a single launch executes the instructions of a group (Instruction::launch)
  bool captured = false;  // from the second run on, the whole list is captured and launched as one graph
};

struct Program;
struct CallList;

// Executes each instruction separately and each wait at its instruction, with the inputs of the list; not captured. For
// timed or observed steps, and for ranks that exchange through the host.
DeviceOrder in_place(const Program& p, const CallList& list);

// For all groups and channels of a program, by factors and channel: the maximum number of transfers that a rank has in
// flight if each wait is at its instruction, and the bytes of the largest operand.
struct OpenTransfers {
  size_t count = 0;
  int64_t bytes = 0;
};
using Channel = std::pair<std::vector<mesh::Factor>, std::string>;
std::map<Channel, OpenTransfers> open_transfers(const Program& p);

// Throws InternalError unless each wait instruction of each list has a place, at or after itself, before any
// instruction that accesses what it waits for, and unless unordered operations do not conflict with what the rank
// enqueued since its queue last waited for it.
void verify_order(const Program& p);

}  // namespace kintsugi::program
