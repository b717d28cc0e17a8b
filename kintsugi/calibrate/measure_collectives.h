// How long the collectives of a transport take, by size.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/program/instruction.h"

namespace kintsugi::calibrate {

// What ranks do together. shift: each sends to the next in a ring. send: from one rank to another, a way.
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
// As programs name it; nothing for what no program has.
std::optional<program::Collective> collective_of(Operation operation);

// What a rank sends at least, the root or the busiest: of `bytes` of the whole value.
double sent_bytes(Operation operation, int ranks, double bytes);
// What the memory of a machine reads and writes at least: every operand once and every result once, on all ranks.
double moved_bytes(Operation operation, int ranks, double bytes);

struct CollectiveTime {
  Operation operation = Operation::all_reduce;
  int ranks = 1;
  int64_t bytes = 0;   // of the whole value: what an all-reduce sums, what an all-gather makes
  double seconds = 0;  // the median, of the slowest rank
};

struct CollectiveOptions {
  std::vector<int64_t> sizes = {};  // bytes of the whole value
  double seconds = 0.05;            // for each operation and size; at least 5 times
  std::function<void(Operation operation, int64_t bytes)> progress = {};  // on rank 0
};

// Of all ranks of the world, which call together; the same on each. Values are fp32, and lie in no cache where that is
// so in a step.
std::vector<CollectiveTime> measure_collectives(comm::World& world, const CollectiveOptions& options);

}  // namespace kintsugi::calibrate
