// Times the collectives of a transport, by size.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/program/instruction.h"

namespace kintsugi::calibrate {

// A collective operation. shift: each rank sends to the next in a ring. send: one rank sends to another, one way.
enum class Operation : uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  scatter,
  gather,
  reduce_scatter,
  all_to_all,
  shift,
  send,
  barrier
};
std::string_view name_of(Operation operation);
std::vector<Operation> operations();
// The corresponding collective of programs; nothing if programs have none.
std::optional<program::Collective> collective_of(Operation operation);

// The minimum number of bytes that the root or the busiest rank sends, for a whole value of `bytes`.
double sent_bytes(Operation operation, int ranks, double bytes);
// The minimum memory traffic of the machine: each operand and each result once, on all ranks.
double moved_bytes(Operation operation, int ranks, double bytes);

struct CollectiveTime {
  Operation operation = Operation::all_reduce;
  int ranks = 1;
  int64_t bytes = 0;   // of the whole value: the summed value of an all-reduce, the result of an all-gather
  double seconds = 0;  // median, of the slowest rank
};

struct CollectiveOptions {
  std::vector<int64_t> sizes = {};  // bytes of the whole value
  double seconds = 0.05;            // per operation and size; at least 5 repetitions
  std::function<void(Operation operation, int64_t bytes)> progress = {};  // on rank 0
};

// Called collectively on all ranks of the world; returns the same on each. Values are fp32, and outside the caches
// where they would be in a step.
std::vector<CollectiveTime> measure_collectives(comm::World& world, const CollectiveOptions& options);

}  // namespace kintsugi::calibrate
