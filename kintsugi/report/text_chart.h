// Curves drawn with characters: with the dots of Braille, eight to a character, or with ASCII.
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
  bool marks = false;  // each value is an "o"; otherwise they are joined
};

// A place on a canvas: the title takes its first row, and with `axis` the steps its last one.
struct TextChart {
  int row = 0, column = 0, rows = 0, columns = 0;
  std::string title;
  bool axis = true;
  double first_step = 0, last_step = 0;  // at the left and the right edge
  bool from_zero = false;                // the scale begins at 0
  double scale_from = 0;                 // the step from which on values count for the scale; higher ones are cut off
};

// The lowest and the highest value of the scale stand beside the curves. Values that are not finite are gaps. A place
// that is too small for a curve has the title alone.
void draw_chart(TextCanvas& canvas, const TextChart& chart, std::span<const TextCurve> curves);

}  // namespace kintsugi::report
