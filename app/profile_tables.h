// A measured step, as text and as CSV.
#pragma once

#include <string>
#include <vector>

#include "app/measured_bubble.h"
#include "kintsugi/train/profile_run.h"

namespace kintsugi::app {

// The time of each rank by operation, the heaviest instructions, the transfers.
std::string print_profile(const train::ProfiledRun& run);
std::string print_bubbles(const std::vector<report::StageBubble>& bubbles);

// A row per instruction and rank, and for time outside of instructions.
std::string profile_csv(const train::ProfiledRun& run);

}  // namespace kintsugi::app
