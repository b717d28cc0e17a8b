// A program bound to the memory and the communicators of a rank.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/bind/bound_kernel.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"
#include "kintsugi/run/groups.h"

namespace kintsugi::run {

struct BoundInstruction : bind::BoundKernel {
  comm::Communicator* communicator = nullptr;  // of a collective or the wait for one; null for copies and kernels
  // Halo exchange: bytes of its input sent to a rank of the group, or bytes of its output received from it.
  struct Part {
    int rank = 0;
    bool receives = false;
    size_t begin = 0, bytes = 0;
  };
  std::vector<Part> parts = {};
};

struct BoundCall {
  const program::Call& call;
  const program::Body& body;
  std::span<BoundInstruction> instructions;  // those of the body
  bool fills = false;                        // inputs are filled before it (program::fills)
};

struct BoundList {
  const program::CallList& calls;
  std::vector<BoundCall> bound;
};

class BoundProgram {
 public:
  // Binds each body once per slot of each list. `memory`: states, followed by the arena. The arguments must outlive
  // this. Throws InternalError if a kernel does not exist or does not take its operands.
  BoundProgram(const program::Program& p, int rank, std::byte* memory, const kernels::KernelSet& kernels,
               const Groups& groups);

  // In the order of the program's lists.
  const std::vector<BoundList>& lists() const { return lists_; }
  // `micro_batches`: of a training step; 0: all. InternalError if there is none.
  const BoundList& list(program::Step step, int64_t micro_batches = 0) const;
  // Bound bodies, each once.
  struct BoundBody {
    const program::Body& body;
    std::vector<BoundInstruction> instructions;
  };
  std::vector<BoundBody>& bodies() { return bodies_; }

 private:
  std::vector<BoundBody> bodies_;
  std::vector<BoundList> lists_;
};

// What all kernel calls of a runner have in common.
struct CallContext {
  const kernels::Numbers& numbers;
  base::ThreadTeam& team;
  bool tf32 = false;
  device::Stream* stream = nullptr;         // of a device
  const kernels::Numbers* later = nullptr;  // device: the scalars in its memory
  kernels::RefusedTokens* refused = nullptr;
};
kernels::KernelCall call_of(const program::Instruction& i, const BoundInstruction& b, const CallContext& context);

// Starts a collective or a message.
comm::Event start(const program::Instruction& i, const BoundInstruction& b);

// Describes a wait for errors: "all_reduce of "x" over data (forward, layer 2)".
std::string describe_wait(const program::Program& p, const program::Body& body, const program::Instruction& i);

// Waits for a transfer of that instruction. comm::Timeout names the rank and the transfer.
void wait_for(const program::Program& p, int rank, const program::Body& body, const program::Instruction& i,
              comm::Communicator& communicator, comm::Event event);

}  // namespace kintsugi::run
