// The predicted step time of a run with [parallel] cluster.
#pragma once

#include "kintsugi/config/settings.h"
#include "kintsugi/train/trainer.h"

namespace kintsugi::app {

// Reads the file; empty without one. UserError as for plan --cluster.
train::PlanStep plan_step(const config::Settings& settings);

}  // namespace kintsugi::app
