// Draws a schedule as text for a terminal, or as SVG.
#pragma once

#include <string>

#include "kintsugi/plan/schedule_timeline.h"

namespace kintsugi::plan {

// "1f1b: 4 stages, 8 micro-batches; 33 units, bubble 37.5%", for the stage with the largest bubble; for interleaved
// also its chunks per stage. `unit` is the unit of the length.
std::string headline(const Schedule& schedule, const Timeline& timeline, std::string_view unit = "units");

// Uses unit costs. One line per stage, or per chunk of a stage if it has several; one column of equal width per unit:
// the letter of the work and the micro-batch, `=` while it continues, `.` while the stage idles. Lines are truncated to
// `width` characters, but to no less than one column; a last line then states what is omitted.
std::string text_picture(const Schedule& schedule, int width = 100);

// An SVG of 1000 px width: one row per stage, one rectangle per task in the color of its work, darker for later chunks,
// labelled with its micro-batch if that fits, with a tooltip that names the task and its time. Beyond `most` tasks only
// the earliest are drawn, and a line says so. `model`: shown below the heading.
std::string svg_picture(const Schedule& schedule, const Timeline& timeline, std::string_view unit = "units",
                        size_t most = 10'000, std::string_view model = "");

}  // namespace kintsugi::plan
