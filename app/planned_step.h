// What a run with [parallel] cluster plans a step to take.
#pragma once

#include "kintsugi/config/settings.h"
#include "kintsugi/train/trainer.h"

namespace kintsugi::app {

// Reads the file; nothing without one. UserError as plan --cluster.
train::PlanStep plan_step(const config::Settings& settings);

}  // namespace kintsugi::app
