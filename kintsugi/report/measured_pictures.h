// Pictures of a measured step.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kintsugi/profile/rank_profile.h"

namespace kintsugi::report {

// The operations of these steps that take most time, as many as there are colours for. A step that takes longer does
// not count more.
std::vector<std::string> heaviest_operations(std::span<const profile::StepProfile* const> steps);

// An SVG of 1000 px width: a bar for each rank, of kernels by operation, communication and waiting, as long as its
// step. `operations`, each in a colour of its own, are the same in all pictures of a page.
std::string step_picture(const profile::StepProfile& profile, std::span<const std::string> operations);
// What its colours mean, as HTML: on a narrow screen a part of the picture, and of its own legend, is out of sight.
std::string step_legend(const profile::StepProfile& profile, std::span<const std::string> operations);

// The same width: a row for each rank, a rectangle for each block of its queue "compute" in the colour of its work,
// with its micro-batch if that fits, and under it a line where its transfers were under way; with tooltips. Of very
// many blocks the earliest have these, and a line says so. `row`: what a row is, "rank" or "stage".
std::string run_schedule_picture(const profile::StepProfile& profile, std::string_view row = "rank");

}  // namespace kintsugi::report
