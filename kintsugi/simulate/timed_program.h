// A program with times instead of instructions: the work of a stage between communications, summed.
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
  int transfer = -1;  // start: index into TimedPrograms::transfers
};

// A collective or message of a program. Transfers of one channel run in order; a message has two ends, in the programs
// of two stages, which are matched in channel order.
struct TimedTransfer {
  int channel = 0;
  int other = -1;  // messages: stage of the other end
  bool receives = false;
  bool late = false;      // begins only when it is waited for, as in the software
  bool buffered = false;  // a send that nobody waits for
  int axis = 0;           // index into TimedPrograms::axes
  TransferTime time = {};
};

struct TimedPrograms {
  std::vector<std::vector<std::vector<Item>>> bodies;  // [stage][body]
  std::vector<TimedTransfer> transfers;
  std::vector<std::string> axes;
  int channels = 0;
};

TimedPrograms timed(const std::vector<program::Program>& programs, const Cluster& cluster, const Software& software);

}  // namespace kintsugi::simulate
