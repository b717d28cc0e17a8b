// What the programs of all stages amount to as a schedule, and what its tasks cost.
#pragma once

#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/plan/schedule_timeline.h"
#include "kintsugi/program/program.h"

namespace kintsugi::app {

// The schedule that the lists of calls of a training step amount to, checked.
plan::Schedule schedule_of(const std::vector<program::Program>& stages, const config::Settings& settings);

// What the work of each chunk costs on a rank, in units of so many flops.
std::vector<plan::Costs> costs_of(const plan::Schedule& schedule, const std::vector<program::Program>& stages,
                                  double unit = 1);

}  // namespace kintsugi::app
