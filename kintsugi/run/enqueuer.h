// Enqueues a list of calls on a device.
#pragma once

#include <cstddef>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/device/device.h"
#include "kintsugi/run/bound_program.h"
#include "kintsugi/run/device_side.h"
#include "kintsugi/run/device_store.h"
#include "kintsugi/run/device_times.h"
#include "kintsugi/run/groups.h"
#include "kintsugi/run/runner.h"

namespace kintsugi::run {

// A transfer of a rank on a device, between its start and its wait.
struct DeviceTransfer {
  comm::Event communication;
  DeviceStore::Copy copy = {};
};

// The environment of the enqueuer, which must outlive it.
struct EnqueueTarget {
  const program::Program& program;
  int rank = 0;
  base::ThreadTeam& team;
  bool tf32 = false;
  DeviceSide& side;
  DeviceStore* store = nullptr;  // null if the program has no file
  const Groups& groups;
  OpenTransfer<DeviceTransfer>& open;
  DeviceTimes* times = nullptr;  // null: no points are marked
};

class Enqueuer {
 public:
  Enqueuer(const EnqueueTarget& target, const BoundList& list, const program::DeviceOrder& order, const Probe& probe)
      : target_(target), list_(list), order_(order), probe_(probe) {}

  // Enqueues the copies of staged inputs, the waits and the instructions in the given order; marks a point after the
  // inputs of the first call and of each that has some, and after each instruction.
  void run(kernels::Numbers& numbers);

 private:
  void wait_before(program::Position here);
  bool copy_inputs(size_t call);
  // Enqueues instruction n of a call and the rest of its launch. Returns the number of instructions.
  size_t enqueue(const BoundCall& call, size_t n, program::Position here, const CallContext& context);
  void launch(const BoundCall& call, size_t n, size_t count, const CallContext& context);
  void start_copy(const program::Instruction& i, const BoundInstruction& b, const program::Call& call);
  void announce(const BoundCall& call, size_t n) const;

  const EnqueueTarget& target_;
  const BoundList& list_;
  const program::DeviceOrder& order_;
  const Probe& probe_;
  size_t next_wait_ = 0, next_input_ = 0;
};

}  // namespace kintsugi::run
