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

// Allocates when it is made, and then nothing: an executor that has one writes the times of each run of the list into
// it, over those of the last. Functions of the executor are called in the order of the list.
class Recorder {
 public:
  Recorder(const program::Program& p, program::Step step);

  program::Step step() const { return step_; }
  bool recorded() const { return whole_.end > 0; }

  const Interval& whole() const { return whole_; }                                     // the run of the list
  const std::vector<Interval>& inputs() const { return inputs_; }                      // by call: filling its inputs
  const std::vector<InstructionTimes>& instructions() const { return instructions_; }  // of all calls, in order

  // For the executor.
  void begin_list() {
    whole_ = {now(), 0};
    next_ = instructions_.data();
  }
  void end_list() { whole_.end = now(); }
  void begin_inputs(size_t call) { inputs_[call].begin = now(); }
  void end_inputs(size_t call) { inputs_[call].end = now(); }
  void begin_instruction() { next_->begin = now(); }
  void end_instruction() {
    next_->end = next_->progressed = now();
    ++next_;
  }
  void end_progress() { next_[-1].progressed = now(); }  // of the instruction before

 private:
  program::Step step_;
  Interval whole_;
  std::vector<Interval> inputs_;
  std::vector<InstructionTimes> instructions_;
  InstructionTimes* next_ = nullptr;
};

}  // namespace kintsugi::profile
