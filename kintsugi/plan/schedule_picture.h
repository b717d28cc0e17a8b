// Drawings of a schedule: as text for a terminal, as SVG for a page.
#pragma once

#include <string>

#include "kintsugi/plan/schedule_timeline.h"

namespace kintsugi::plan {

// "1f1b: 4 stages, 8 micro-batches; 33 units, bubble 37.5%", for the stage that idles most; for interleaved also its
// chunks per stage. `unit` is the unit of the length.
std::string headline(const Schedule& schedule, const Timeline& timeline, std::string_view unit = "units");

// With unit costs. A line for each stage, or for each chunk of a stage if it has several; a column of equal width for
// each unit: the letter of the work and the micro-batch, `=` while it continues, `.` while the stage idles. No line is
// longer than `width` characters, if at least one column fits: a last line says what is left out at the right.
std::string text_picture(const Schedule& schedule, int width = 100);

// An SVG of 1000 px width: a row for each stage, a rectangle for each task in the colour of its work, darker from
// chunk to chunk, labelled with its micro-batch if that fits, and with a tooltip that names the task and its time. If
// there are more than `most` tasks, the earliest are drawn, and a line says so. `model`: whose it is, below the
// heading.
std::string svg_picture(const Schedule& schedule, const Timeline& timeline, std::string_view unit = "units",
                        size_t most = 10'000, std::string_view model = "");

}  // namespace kintsugi::plan
