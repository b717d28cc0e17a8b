// Pictures of a measured step.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kintsugi/profile/rank_profile.h"

namespace kintsugi::report {

// Returns the operations of these steps that take the most time, as many as there are colours. All steps have equal
// weight regardless of their length.
std::vector<std::string> heaviest_operations(std::span<const profile::StepProfile* const> steps);

// Returns an SVG of 1000 px width: a bar per rank, of kernels by operation, communication and waiting, as long as its
// step. `operations`, each with its own colour, are the same in all pictures of a page.
std::string step_picture(const profile::StepProfile& profile, std::span<const std::string> operations);
// The legend of its colours, as HTML: on narrow screens part of the picture, including its own legend, is out of sight.
std::string step_legend(const profile::StepProfile& profile, std::span<const std::string> operations);

// Same width: a row per rank, a rectangle per block of its queue "compute" in the colour of its work, with its
// micro-batch if that fits, and below it a line while transfers were in flight; with tooltips. If there are very many
// blocks, only the earliest have these, and a line says so. `row`: what a row is, "rank" or "stage".
std::string run_schedule_picture(const profile::StepProfile& profile, std::string_view row = "rank");

}  // namespace kintsugi::report
