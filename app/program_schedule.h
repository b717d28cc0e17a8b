// The schedule that the programs of all stages follow, and the cost of its tasks.
#pragma once

#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/plan/schedule_timeline.h"
#include "kintsugi/program/program.h"

namespace kintsugi::app {

// The schedule given by the call lists of a training step, checked.
plan::Schedule schedule_of(const std::vector<program::Program>& stages, const config::Settings& settings);

// The cost of each chunk's work on one rank, in units of `unit` FLOPs.
std::vector<plan::Costs> costs_of(const plan::Schedule& schedule, const std::vector<program::Program>& stages,
                                  double unit = 1);

}  // namespace kintsugi::app
