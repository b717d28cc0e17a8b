// The bubble of a pipeline as planned, beside what was measured.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/profile/rank_profile.h"
#include "kintsugi/program/program.h"

namespace kintsugi::app {

// Of a stage: its idle time over its busy time.
struct StageBubble {
  double planned = 0;   // tasks as long as their arithmetic, communication free
  double replayed = 0;  // the same schedule with tasks as long as they were measured
  // As measured: the step without its tasks over its tasks, the mean of its ranks. That is the sum of the three below.
  double run = 0;
  double waiting = 0;        // for other ranks
  double communication = 0;  // standing still while a transfer was under way
  double rest = 0;           // update, sums of gradients, inputs
  int rank = -1;             // for which its ranks waited longest; -1: none
};

// By stage. UserError if the profile does not belong to these programs.
std::vector<StageBubble> stage_bubbles(const std::vector<program::Program>& stages, const config::Settings& settings,
                                       const profile::StepProfile& profile);

}  // namespace kintsugi::app
