// What a rank enqueues on a device for a list of calls in addition to the instructions of its bodies: copies of inputs,
// and waits, which may come later than the wait instructions (lower/place_waits).
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
// As Position::instruction: before the inputs of the call are copied.
constexpr int kBeforeInputs = -1;

// A wait instruction, and the instruction before which the rank's stream waits. The number of calls, as before.call: at
// the end of the list.
struct PlacedWait {
  Position wait, before;

  bool operator==(const PlacedWait&) const = default;
};

// An input that is copied to its buffer before the first call that reads it; `offset` is from the beginning of the
// staging area.
struct StagedInput {
  size_t call = 0;  // in the list
  BufferId buffer = kNoBuffer;
  int64_t offset = 0;

  bool operator==(const StagedInput&) const = default;
};

struct DeviceOrder {
  std::vector<StagedInput> inputs;  // in the order of calls
  std::vector<PlacedWait> waits;    // in the order in which they are enqueued, which is ascending in `before`
  // Collectives and messages that need not come after what the rank's stream has enqueued before them, ascending. All
  // others wait for it.
  std::vector<Position> unordered;
  bool joined = false;    // one launch performs the instructions of a group (Instruction::launch)
  bool captured = false;  // from the second run on, all of it is captured and launched as one
};

struct Program;
struct CallList;

// Each instruction by itself and each wait where its instruction is, with the inputs of the list; not captured. For
// steps that are timed or watched, and for ranks that exchange through the host.
DeviceOrder in_place(const Program& p, const CallList& list);

// Of all groups and channels of a program, by factors and channel: the most transfers that a rank has open at a time if
// each wait is where its instruction is, and the bytes of the largest operand.
struct OpenTransfers {
  size_t count = 0;
  int64_t bytes = 0;
};
using Channel = std::pair<std::vector<mesh::Factor>, std::string>;
std::map<Channel, OpenTransfers> open_transfers(const Program& p);

// InternalError unless each wait instruction of each list has a place, behind it or where it is, before any instruction
// that touches what it waits for, and unless nothing that is unordered touches what the rank enqueued since its queue
// last waited for that.
void verify_order(const Program& p);

}  // namespace kintsugi::program
