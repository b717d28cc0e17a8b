// When each instruction of a step began and ended, on one rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::profile {

// Nanoseconds of a clock that all processes of a machine share and that does not go back.
inline int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Interval {
  int64_t begin = 0, end = 0;

  int64_t length() const { return end - begin; }
};

// Of an instruction. From `end` to `progressed` the rank moved transfers on that are under way; equal: it did not.
struct InstructionTimes {
  int64_t begin = 0, end = 0, progressed = 0;
};

// Of a run of a list of calls on one rank.
struct StepTimes {
  program::Step step = program::Step::train;
  Interval whole = {};
  std::vector<Interval> inputs = {};                // by call: filling its inputs
  std::vector<InstructionTimes> instructions = {};  // of all calls, in order
};

// Allocates when it is made, and then nothing: an executor that has one writes the times of each run of the list into
// it, over those of the last. Functions are called in the order of the list.
class Recorder {
 public:
  Recorder(const program::Program& p, program::Step step);

  program::Step step() const { return times_.step; }
  const StepTimes& times() const { return times_; }

  // For the executor.
  void begin_list() {
    times_.whole = {now(), 0};
    next_ = times_.instructions.data();
  }
  void end_list() { times_.whole.end = now(); }
  void begin_inputs(size_t call) { times_.inputs[call].begin = now(); }
  void end_inputs(size_t call) { times_.inputs[call].end = now(); }
  void begin_call() { last_ = now(); }
  // An instruction begins where the one before it ended: one reading of the clock is enough.
  void end_instruction() {
    next_->begin = last_;
    last_ = next_->end = next_->progressed = now();
    ++next_;
  }
  // Of a device, whose times are known after the step: all but the beginning of the list.
  StepTimes& to_fill() { return times_; }
  void end_progress() { last_ = next_[-1].progressed = now(); }  // of the instruction before

 private:
  StepTimes times_;
  InstructionTimes* next_ = nullptr;
  int64_t last_ = 0;  // reading
};

}  // namespace kintsugi::profile
