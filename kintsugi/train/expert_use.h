// The use of experts in a step, from the states of its program.
#pragma once

#include <optional>

#include "kintsugi/config/settings.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/train/metrics.h"

namespace kintsugi::train {

// Of the newest step, which must be complete. Nothing for a rank or model without experts.
std::optional<ExpertUse> expert_use(const config::Settings& settings, const run::Executor& executor);

}  // namespace kintsugi::train
