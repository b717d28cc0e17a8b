// The planned bubble of a pipeline, compared with the measured one.
#pragma once

#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/profile/rank_profile.h"
#include "kintsugi/program/program.h"
#include "kintsugi/report/report_run.h"

namespace kintsugi::app {

// By stage. UserError if the profile does not belong to these programs.
std::vector<report::StageBubble> stage_bubbles(const std::vector<program::Program>& stages,
                                               const config::Settings& settings, const profile::StepProfile& profile);

}  // namespace kintsugi::app
