// Measures single steps of all ranks.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/profile/measure.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/train/clock_offset.h"

namespace kintsugi::train {

// begin(), a step of the executor, end(); then again, and at last take(). All ranks call together, between steps; what
// is allocated and exchanged is outside of them.
class StepProfiler {
 public:
  // `clock`: clock_offset(all).
  StepProfiler(run::Executor& executor, comm::Communicator& all, const ClockOffset& clock, bool with_instructions);
  ~StepProfiler();
  StepProfiler(const StepProfiler&) = delete;
  StepProfiler& operator=(const StepProfiler&) = delete;

  void begin();
  void end();
  profile::RankProfile take() const { return measure_.take(); }

  // Of the step that was last measured.
  const profile::StepTimes& times() const { return recorder_.times(); }
  const std::vector<profile::Started>& started() const { return measure_.started(); }
  const std::vector<profile::Wait>& waits() const { return waits_; }

 private:
  run::Executor& executor_;
  comm::Communicator& all_;
  ClockOffset clock_;
  profile::Recorder recorder_;
  profile::Measure measure_;
  std::vector<profile::Wait> waits_;
};

// What a run writes about a step: profile.json of `step` steps done, in one piece, of as many ranks as a page shows. On
// rank 0; "" on the others. All ranks call together.
std::string gather_profile(comm::Communicator& all, const profile::RankProfile& mine, int64_t step,
                           const ClockOffset& clock);

}  // namespace kintsugi::train
