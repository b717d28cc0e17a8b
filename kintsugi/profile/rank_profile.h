// Where a rank spent the time of a step, as measured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::profile {

// compute: kernels. communication: starting, progressing and waiting for transfers in flight. waiting: for another rank
// that has not begun its part.
enum class Part : uint8_t { compute, communication, waiting };
std::string_view name_of(Part part);

// Equal kernels or transfers of a phase. Seconds, flops and bytes are per step, averaged over the measured steps.
struct OperationTime {
  std::string operation = {};  // "linear", "all_reduce"
  std::string phase = {};      // "forward"
  Part part = Part::compute;
  double calls = 0, seconds = 0;
  double flops = 0, memory_bytes = 0, wire_bytes = 0;
};

struct WaitedFor {
  int rank = 0;
  double seconds = 0;
};

// Transfers of one kind over the same axes.
struct TransferTime {
  std::string operation = {}, over = {};  // "all_reduce", "data"
  double calls = 0;
  double wire_bytes = 0;  // sent by this rank
  double seconds = 0;     // exposed: waiting while they were in flight
  double waiting = 0;     // waiting for members that had not begun
  // Of those waited for, from the arrival of the last member to their end: count, duration, bytes.
  double timed = 0, timed_seconds = 0, timed_bytes = 0;
};

// The work of a chunk of layers: kernels only.
struct TaskTime {
  std::string work = {};  // "forward", "backward", "weight"
  int chunk = 0;
  double calls = 0, seconds = 0;  // over all calls
};

// A block of one kind on a queue of a rank; begin and end in seconds from the beginning of the step.
struct Block {
  // "forward", "update", ...; "waiting": for another rank; "transfer": for one in flight; "inputs". On queues other
  // than "compute", the phase.
  std::string work = {};
  int chunk = 0;
  int64_t micro_batch = -1;
  int waited_for = -1;  // rank; only for "waiting"
  double begin = 0, end = 0;
};
struct QueueBlocks {
  std::string queue = {};  // "compute", "data"
  std::vector<Block> blocks = {};
  int64_t left_out = 0;  // number truncated at the end of a very long queue
};

// An instruction of a body, over all its calls; on a device, with those that its launch executes.
struct InstructionTime {
  std::string body = {};  // "forward.last"
  int64_t at = 0;         // index in the body
  std::string operation = {}, phase = {}, value = {};
  int layer = 0;
  int64_t launched = 1;  // number of instructions
  bool communicates = false;
  double calls = 0, seconds = 0, waiting = 0;  // waiting: part of the seconds
  double flops = 0, memory_bytes = 0, wire_bytes = 0;
};

// seconds = sum over operations + inputs + between.
struct RankProfile {
  int rank = 0, stage = 0;
  int64_t steps = 0;   // measured
  double seconds = 0;  // per step
  double inputs = 0;   // filling inputs
  double between = 0;  // between instructions: executor overhead
  std::vector<OperationTime> operations = {};
  std::vector<WaitedFor> waits = {};  // sorted by rank
  std::vector<TransferTime> transfers = {};
  std::vector<TaskTime> tasks = {};
  std::vector<QueueBlocks> queues = {};            // of the last step
  std::vector<InstructionTime> instructions = {};  // if requested

  double of(Part part) const;
  // Time spent waiting for other ranks, divided by the rest of the step.
  double bubble() const { return of(Part::waiting) / (seconds - of(Part::waiting)); }
};

// All ranks, or representatives of all.
struct StepProfile {
  int64_t step = 0;   // step of the run that was measured
  int ranks = 0;      // total
  double clocks = 0;  // maximum difference between the clocks of ranks, in seconds
  std::vector<RankProfile> of_ranks = {};
};

// One line. `rank_json`: the ranks' own, so that each rank can serialize itself.
std::string to_json(const RankProfile& profile);
std::string to_json(const StepProfile& profile, const std::vector<std::string>& rank_json);

// Throws UserError if it is incomplete; `name` is the file's.
RankProfile rank_profile_of(const std::string& json, const std::string& name);
StepProfile step_profile_of(const std::string& json, const std::string& name);

}  // namespace kintsugi::profile
