// Pictures of a schedule: as text for a terminal, as SVG for a page.
#pragma once

#include <string>

#include "kintsugi/plan/schedule_timeline.h"

namespace kintsugi::plan {

// "1f1b: 4 stages, 8 micro-batches; 33 units, bubble 37.5%", of the stage that idles most; interleaved names its chunks
// per stage too. `unit` is what the length is counted in.
std::string headline(const Schedule& schedule, const Timeline& timeline, std::string_view unit = "units");

// With unit costs. A line for each stage, or for each chunk of a stage where it has several; a column of equal width
// for each unit: the letter of the work and the micro-batch, `=` where it goes on, `.` where the stage idles. No line
// is longer than `width` characters, as far as one column fits: a last line says what is left out at the right.
std::string text_picture(const Schedule& schedule, int width = 120);

// An SVG of 1000 px width: a row for each stage, a rectangle for each task in the colour of its work, darker from chunk
// to chunk, with its micro-batch where there is room, and as a hint what it is and when. Of more than `most` tasks
// those that begin first are drawn, and a line says so.
std::string svg_picture(const Schedule& schedule, const Timeline& timeline, std::string_view unit = "units",
                        size_t most = 10'000);

}  // namespace kintsugi::plan
