// Attributes the time of a step, given the times of its instructions.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "kintsugi/profile/arrivals.h"
#include "kintsugi/profile/rank_profile.h"
#include "kintsugi/profile/recorder.h"

namespace kintsugi::profile {

// The part of a wait that passed before the last member had begun its transfer.
struct Wait {
  size_t started = 0;     // the instruction that started it, over all calls in order
  int64_t until = 0;      // end of the time spent waiting for another rank; within [begin, end] of the wait
  int64_t last_came = 0;  // arrival of the last member, at most the end
  int waited_for = -1;    // rank; -1: none
};

// [instruction over all calls]; an instruction that is not a wait is its own start and waits for nothing. Times are by
// the own clock; `arrivals` has `offset` added.
std::vector<Wait> waits_of(const program::Program& p, const StepTimes& times, std::span<const Started> started,
                           const Arrivals& arrivals, int rank, int64_t offset);

// Accumulates the measured steps of a rank. The program must outlive it.
class Measure {
 public:
  // `with_instructions`: also record each instruction.
  Measure(const program::Program& p, program::Step step, int rank, bool with_instructions);

  const std::vector<Started>& started() const { return started_; }
  void add(const StepTimes& times, std::span<const Wait> waits);
  // The mean over the steps added.
  RankProfile take() const;

 private:
  // i: the first instruction of the launch. cost, calls: what the instruction adds.
  void add_operation(const program::Instruction& i, const program::Cost& cost, int calls, const Wait& wait,
                     double waiting, double rest);
  void add_transfer(const program::Instruction& i, const Wait& wait, const InstructionTimes& t, double waiting);
  double moved_bytes(const program::Instruction& i) const;

  const program::Program& p_;
  program::Step step_;
  std::vector<Started> started_;
  std::map<int, double> wire_bytes_;         // [event]
  std::vector<std::vector<size_t>> row_of_;  // [body][instruction]: of its launch
  RankProfile sum_;                          // over all steps added
};

}  // namespace kintsugi::profile
