// A program with times instead of instructions: what a stage does between its communications, added up.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/kernel_costs.h"
#include "kintsugi/simulate/transfer_costs.h"

namespace kintsugi::simulate {

// Kernels until the next communication, or the start of a transfer, or the wait for one.
struct Item {
  enum class Kind : uint8_t { kernels, start, wait };
  Kind kind = Kind::kernels;
  std::array<double, kClasses> kernels = {};  // seconds
  int event = -1;
  int transfer = -1;  // of a start: a position in TimedPrograms::transfers
};

// A collective or message as it stands in a program. Those of one channel run in order; a message has two ends, in the
// programs of two stages, which meet in the channel's order.
struct TimedTransfer {
  int channel = 0;
  int other = -1;  // of a message: the stage of the other end
  bool receives = false;
  bool late = false;      // begins only when it is waited for, as the software does
  bool buffered = false;  // a send that nobody waits for
  int axis = 0;           // a position in TimedPrograms::axes
  TransferTime time = {};
};

struct TimedPrograms {
  std::vector<std::vector<std::vector<Item>>> bodies;  // by stage, by body
  std::vector<TimedTransfer> transfers;
  std::vector<std::string> axes;
  int channels = 0;
};

TimedPrograms timed(const std::vector<program::Program>& programs, const Cluster& cluster, const Software& software);

}  // namespace kintsugi::simulate
