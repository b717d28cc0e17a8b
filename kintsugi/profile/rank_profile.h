// Where the time of a step went on a rank, as measured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::profile {

// compute: kernels. communication: starting transfers, moving them on, and waiting for them while they are under way.
// waiting: for another rank that has not begun its part.
enum class Part : uint8_t { compute, communication, waiting };
std::string_view name_of(Part part);

// Equal kernels or transfers of a phase. Seconds, flops and bytes of one step, on average over those that were
// measured.
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
  double wire_bytes = 0;  // that this rank sends
  double seconds = 0;     // exposed: the rank waited for them while they were under way
  double waiting = 0;     // for members that had not begun
  // Those that it waited for from when the last member came to their end: how many, how long they took, their bytes.
  double timed = 0, timed_seconds = 0, timed_bytes = 0;
};

// The work of a chunk of the layers: its kernels alone.
struct TaskTime {
  std::string work = {};  // "forward", "backward", "weight"
  int chunk = 0;
  double calls = 0, seconds = 0;  // of all calls
};

// A stretch of one kind on a queue of a rank, from begin to end in seconds from the beginning of the step.
struct Block {
  // "forward", "update", ...; "waiting": for another rank; "transfer": for one that was under way; "inputs". Of another
  // queue than "compute" the phase.
  std::string work = {};
  int chunk = 0;
  int64_t micro_batch = -1;
  int waited_for = -1;  // the rank; of "waiting" alone
  double begin = 0, end = 0;
};
struct QueueBlocks {
  std::string queue = {};  // "compute", "data"
  std::vector<Block> blocks = {};
  int64_t left_out = 0;  // at the end, where there are very many
};

// An instruction of a body, over all calls of it.
struct InstructionTime {
  std::string body = {};  // "forward.last"
  int64_t at = 0;         // in the body
  std::string operation = {}, phase = {}, value = {};
  int layer = 0;
  bool communicates = false;
  double calls = 0, seconds = 0, waiting = 0;  // waiting: of the seconds
  double flops = 0, memory_bytes = 0, wire_bytes = 0;
};

// seconds = the sum of operations + inputs + between.
struct RankProfile {
  int rank = 0, stage = 0;
  int64_t steps = 0;   // that were measured
  double seconds = 0;  // of a step
  double inputs = 0;   // filling inputs
  double between = 0;  // between instructions: what the executor itself takes
  std::vector<OperationTime> operations = {};
  std::vector<WaitedFor> waits = {};  // by rank
  std::vector<TransferTime> transfers = {};
  std::vector<TaskTime> tasks = {};
  std::vector<QueueBlocks> queues = {};            // of the last step
  std::vector<InstructionTime> instructions = {};  // where they are asked for

  double of(Part part) const;
  // Of the step: the time in which it waited for others over the rest.
  double bubble() const { return of(Part::waiting) / (seconds - of(Part::waiting)); }
};

// Of all ranks, or of some that stand for all.
struct StepProfile {
  int64_t step = 0;   // that was measured, of the run
  int ranks = 0;      // all
  double clocks = 0;  // by how many seconds the clocks of ranks may differ
  std::vector<RankProfile> of_ranks = {};
};

// In one line. `rank_json`: those of the ranks, so that each may write its own.
std::string to_json(const RankProfile& profile);
std::string to_json(const StepProfile& profile, const std::vector<std::string>& rank_json);

// UserError where it is not whole; `name` is that of the file.
RankProfile rank_profile_of(const std::string& json, const std::string& name);
StepProfile step_profile_of(const std::string& json, const std::string& name);

}  // namespace kintsugi::profile
