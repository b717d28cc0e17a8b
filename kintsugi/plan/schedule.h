// A pipeline schedule as data: the ordered tasks of each stage, from which the call lists of compiled programs are
// generated. docs/schedules.md describes each schedule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::plan {

// backward: the input gradient, and also the weight gradient unless the schedule is split.
enum class Work : uint8_t { forward, backward, weight };
std::string_view name_of(Work work);  // "forward", "backward", "weight"

struct Task {
  Work work = Work::forward;
  int chunk = 0;  // in the whole model, 0 to stages * chunks - 1; chunk g is on stage g % stages
  int64_t micro_batch = 0;

  bool operator==(const Task&) const = default;
};
std::string to_string(const Task& task);  // "forward of chunk 2, micro-batch 7"

// Per kind of work and chunk, micro-batches are in ascending order, so that gradients accumulate as on one rank.
struct Schedule {
  std::string name;
  int stages = 1;
  int chunks = 1;  // per stage
  int64_t micro_batches = 1;
  bool split = false;                    // weight gradients are separate tasks
  std::vector<std::vector<Task>> tasks;  // [stage], in order

  int all_chunks() const { return stages * chunks; }
};

// A kind of schedule.
struct ScheduleRow {
  std::string_view name;
  // Generates the tasks of a stage; `numbers` has stages, chunks and micro-batches.
  std::vector<Task> (*tasks)(const Schedule& numbers, int stage) = nullptr;
  bool split = false;           // weight gradients are separate tasks
  bool several_chunks = false;  // several chunks per stage; micro-batches must then be a multiple of the stages

  int64_t works() const { return split ? 3 : 2; }  // tasks per chunk and micro-batch
};

// All schedules, in the order of messages:
//   gpipe        all forwards, then all backwards. Huang et al. 2019, section 2.2
//   1f1b         stage s has at most stages - s micro-batches in flight. Narayanan et al. 2021, section 2.2.1
//   interleaved  several chunks per stage; micro-batches a multiple of the stages. Ibid., section 2.2.2. With one chunk
//                it equals 1f1b, with any number of micro-batches
//   zero_bubble  ZB-H1: 1f1b with weight gradients postponed into the bubble. Qi et al. 2023, section 2.1
const std::vector<ScheduleRow>& schedules();
std::vector<std::string_view> schedule_names();
const ScheduleRow& schedule_named(std::string_view name);  // UserError if there is none

// Throws UserError, suggesting the nearest valid number, if the row does not support these numbers.
Schedule make_schedule(const ScheduleRow& row, int stages, int chunks, int64_t micro_batches);
Schedule make_schedule(std::string_view name, int stages, int chunks, int64_t micro_batches);

// Throws InternalError if a task is missing, duplicated or on the wrong stage, if micro-batches of a chunk are not in
// ascending order per kind of work, or on deadlock. A forward waits for the forward of the previous chunk, a backward
// for its forward and the backward of the next chunk, a weight gradient for its backward.
void check(const Schedule& schedule);

// Maximum number of micro-batches in flight on a stage.
struct InFlight {
  std::vector<int64_t> by_chunk;  // per chunk of the stage
  int64_t together = 0;           // over all its chunks at one instant; at most the sum of by_chunk
};
// A micro-batch is in flight from the beginning of its forward to the end of its last task, or of its backward if
// `until` says so: in a split schedule all activations are kept until then, and fewer until the weight gradient.
InFlight in_flight(const Schedule& schedule, int stage, Work until = Work::weight);

}  // namespace kintsugi::plan
