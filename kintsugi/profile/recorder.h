// Records the begin and end of each instruction of a step on one rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::profile {

// Nanoseconds of a monotonic clock shared by all processes of a machine.
inline int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Interval {
  int64_t begin = 0, end = 0;

  int64_t length() const { return end - begin; }
};

// Times of an instruction. From `end` to `progressed` the rank progressed transfers in flight; equal if it did not.
struct InstructionTimes {
  int64_t begin = 0, end = 0, progressed = 0;
};

// One run of a list of calls on one rank.
struct StepTimes {
  program::Step step = program::Step::train;
  Interval whole = {};
  std::vector<Interval> inputs = {};                // [call]: filling its inputs
  std::vector<InstructionTimes> instructions = {};  // over all calls, in order
};

// Allocates only on construction. An executor with a recorder stores the times of each run of the list in it,
// overwriting the last. Functions are called in list order.
class Recorder {
 public:
  // by_launch: on a device, instructions of one launch are executed by it, and the first has the time of all. Otherwise
  // each instruction is executed separately.
  Recorder(const program::Program& p, program::Step step, bool by_launch = false);

  program::Step step() const { return times_.step; }
  bool by_launch() const { return by_launch_; }
  const StepTimes& times() const { return times_; }

  // Called by the executor.
  void begin_list() {
    times_.whole = {now(), 0};
    next_ = times_.instructions.data();
  }
  void end_list() { times_.whole.end = now(); }
  void begin_inputs(size_t call) { times_.inputs[call].begin = now(); }
  void end_inputs(size_t call) { times_.inputs[call].end = now(); }
  void begin_call() { last_ = now(); }
  // An instruction begins when the previous one ended, so one clock reading suffices.
  void end_instruction() {
    next_->begin = last_;
    last_ = next_->end = next_->progressed = now();
    ++next_;
  }
  // For devices, whose times are known after the step: everything but the beginning of the list.
  StepTimes& to_fill() { return times_; }
  void end_progress() { last_ = next_[-1].progressed = now(); }  // of the previous instruction

 private:
  StepTimes times_;
  bool by_launch_ = false;
  InstructionTimes* next_ = nullptr;
  int64_t last_ = 0;  // last reading
};

}  // namespace kintsugi::profile
