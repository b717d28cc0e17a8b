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

// Call begin(), run a step of the executor, call end(); repeat, then call take(). Collective, between steps; allocates
// and communicates outside them.
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

  // For the last measured step.
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

// Gathers the profile of a run after `step` completed steps: profile.json, for as many ranks as a page shows.
// Collective; "" on ranks other than 0.
std::string gather_profile(comm::Communicator& all, const profile::RankProfile& mine, int64_t step,
                           const ClockOffset& clock);

}  // namespace kintsugi::train
