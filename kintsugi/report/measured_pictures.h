// Pictures of a measured step.
#pragma once

#include <string>
#include <string_view>

#include "kintsugi/profile/rank_profile.h"

namespace kintsugi::report {

// An SVG of 1000 px width: a bar for each rank, of kernels by operation, communication and waiting, as long as its
// step.
std::string step_picture(const profile::StepProfile& profile);

// The same width: a row for each rank, a rectangle for each block of its queue "compute" in the colour of its work,
// with its micro-batch if that fits, and under it a line where its transfers were under way; with tooltips. Of very
// many blocks the earliest have these, and a line says so. `row`: what a row is, "rank" or "stage".
std::string run_schedule_picture(const profile::StepProfile& profile, std::string_view row = "rank");

}  // namespace kintsugi::report
