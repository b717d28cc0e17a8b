// From the times of the instructions of a step to where the time went.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "kintsugi/profile/arrivals.h"
#include "kintsugi/profile/rank_profile.h"
#include "kintsugi/profile/recorder.h"

namespace kintsugi::profile {

// Which part of the wait for a transfer went by before its last member had begun.
struct Wait {
  size_t started = 0;     // the instruction that started it, of all calls in order
  int64_t until = 0;      // until then it waited for another; in [begin, end] of the wait
  int64_t last_came = 0;  // the last member, not after the end
  int waited_for = -1;    // a rank; -1: none
};

// By instruction of all calls; what is no wait is its own start and waits for nothing. Times are of the own clock, to
// which `offset` was added for `arrivals`.
std::vector<Wait> waits_of(const program::Program& p, const StepTimes& times, std::span<const Started> started,
                           const Arrivals& arrivals, int rank, int64_t offset);

// Adds up the steps of a rank that were measured. The program outlives it.
class Measure {
 public:
  // `with_instructions`: each by itself too.
  Measure(const program::Program& p, program::Step step, int rank, bool with_instructions);

  const std::vector<Started>& started() const { return started_; }
  void add(const StepTimes& times, std::span<const Wait> waits);
  // The mean of the steps that were added.
  RankProfile take() const;

 private:
  void add_operation(const program::Instruction& i, const Wait& wait, double waiting, double rest);
  void add_transfer(const program::Instruction& i, const Wait& wait, const InstructionTimes& t, double waiting);
  double moved_bytes(const program::Instruction& i) const;

  const program::Program& p_;
  program::Step step_;
  std::vector<Started> started_;
  std::map<int, double> wire_bytes_;  // by event
  std::vector<size_t> first_row_;     // by body: of its instructions
  RankProfile sum_;                   // of all steps that were added
};

}  // namespace kintsugi::profile
