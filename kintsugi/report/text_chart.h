// Curves in text: with Braille dots, eight per character, or ASCII.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kintsugi/report/metrics_table.h"
#include "kintsugi/report/text_canvas.h"

namespace kintsugi::report {

struct TextCurve {
  const Measure* measure = nullptr;
  Ink ink = Ink::first;
  bool marks = false;  // draw an "o" at each value instead of connecting them
};

// A region of a canvas: the title occupies the first row and, with `axis`, the steps the last.
struct TextChart {
  int row = 0, column = 0, rows = 0, columns = 0;
  std::string title;
  bool axis = true;
  double first_step = 0, last_step = 0;  // at the left and right edge
  bool from_zero = false;                // the scale begins at 0
  double scale_from = 0;                 // the first step that counts for the scale; higher values are clipped
};

// The minimum and maximum of the scale appear next to the curves. Non-finite values are gaps. A region too small for a
// curve shows only the title.
void draw_chart(TextCanvas& canvas, const TextChart& chart, std::span<const TextCurve> curves);

}  // namespace kintsugi::report
