#include "kintsugi/report/text_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kintsugi/base/format.h"
#include "kintsugi/report/thin.h"

namespace kintsugi::report {
namespace {

constexpr int kMargin = 8;  // columns of the labels next to a curve

struct Scale {
  double low = 0, high = 0;
  bool known = false;

  void add(double value) {
    if (!std::isfinite(value)) return;
    low = known ? std::min(low, value) : value;
    high = known ? std::max(high, value) : value;
    known = true;
  }
  // 0 at the top, `count` - 1 at the bottom.
  int place(double value, int count) const {
    const double share = high > low ? (high - value) / (high - low) : 0.5;
    return std::clamp(static_cast<int>(std::lround(share * (count - 1))), 0, count - 1);
  }
};

// The dots of an area, and the last curve to draw each character.
class Dots {
 public:
  Dots(int columns, int rows, Characters characters)
      : unicode_(characters == Characters::unicode), columns_(columns), rows_(rows) {
    cells_.resize(static_cast<size_t>(columns * rows));
  }

  int width() const { return columns_ * across(); }
  int height() const { return rows_ * down(); }

  void set(int x, int y, const TextCurve& curve) {
    Cell& cell = cells_[static_cast<size_t>(y / down() * columns_ + x / across())];
    cell.dots |= 1u << (x % across() * down() + y % down());
    cell.ink = curve.ink;
    cell.marked |= curve.marks;
  }

  // Draws a connected line between two dots.
  void join(int x, int y, int to_x, int to_y, const TextCurve& curve) {
    const int length = std::max({std::abs(to_x - x), std::abs(to_y - y), 1});
    for (int i = 0; i <= length; ++i)
      set(x + static_cast<int>(std::lround(static_cast<double>((to_x - x) * i) / length)),
          y + static_cast<int>(std::lround(static_cast<double>((to_y - y) * i) / length)), curve);
  }

  void draw(TextCanvas& canvas, int row, int column) const {
    for (int y = 0; y < rows_; ++y)
      for (int x = 0; x < columns_; ++x) {
        const Cell& cell = cells_[static_cast<size_t>(y * columns_ + x)];
        if (cell.dots)
          canvas.write(row + y, column + x, cell.marked ? "o" : unicode_ ? braille(cell) : ascii(cell), cell.ink);
      }
  }

 private:
  struct Cell {
    unsigned dots = 0;  // from the top down, left column first
    Ink ink = Ink::first;
    bool marked = false;
  };

  int across() const { return unicode_ ? 2 : 1; }
  int down() const { return unicode_ ? 4 : 3; }

  // From U+2800: dots 1, 2, 3, 7 are the left column, 4, 5, 6, 8 the right.
  static std::string braille(const Cell& cell) {
    constexpr unsigned kBits[] = {0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80};
    unsigned code = 0x2800;
    for (unsigned i = 0; i < 8; ++i)
      if (cell.dots >> i & 1) code |= kBits[i];
    return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
            static_cast<char>(0x80 | (code & 0x3f))};
  }

  static std::string ascii(const Cell& cell) {
    constexpr std::string_view kShapes = " '-!.:i|";  // by the upper, middle and lower third
    return std::string(1, kShapes[cell.dots]);
  }

  bool unicode_;
  int columns_, rows_;
  std::vector<Cell> cells_;
};

void draw_curve(Dots& dots, const TextChart& chart, const TextCurve& curve, const Scale& y) {
  const Measure& m = *curve.measure;
  const double width = std::max(1.0, chart.last_step - chart.first_step);
  const auto column = [&](double step) {
    const double share = (step - chart.first_step) / width;
    return std::clamp(static_cast<int>(std::lround(share * (dots.width() - 1))), 0, dots.width() - 1);
  };
  bool joined = false;
  int last_x = 0, last_y = 0;
  for (const Point& point : thin(m.steps, m.values, static_cast<size_t>(dots.width()))) {
    if (!std::isfinite(point.y)) {
      joined = false;
      continue;
    }
    const int at_x = column(point.x), at_y = y.place(point.y, dots.height());
    if (joined && !curve.marks)
      dots.join(last_x, last_y, at_x, at_y, curve);
    else
      dots.set(at_x, at_y, curve);
    joined = true;
    last_x = at_x;
    last_y = at_y;
  }
}

std::string number_text(double value) {
  const double size = std::fabs(value);
  if (size >= 1e4 && size < 1e15) return base::format_count(value);
  return size > 0 && size < 1e-3 ? fmt::format("{:.1e}", value) : fmt::format("{:.4g}", value);
}

}  // namespace

void draw_chart(TextCanvas& canvas, const TextChart& chart, std::span<const TextCurve> curves) {
  canvas.write(chart.row, chart.column, first_columns(chart.title, chart.columns), Ink::strong);
  const int rows = chart.rows - (chart.axis ? 2 : 1), columns = chart.columns - kMargin;
  if (rows < 1 || columns < 4) return;
  Scale y;
  for (const TextCurve& curve : curves)
    for (size_t i = 0; i < curve.measure->values.size(); ++i)
      if (curve.measure->steps[i] >= chart.scale_from) y.add(curve.measure->values[i]);
  if (!y.known) return;
  if (chart.from_zero) y.add(0);
  Dots dots(columns, rows, canvas.characters());
  for (const TextCurve& curve : curves) draw_curve(dots, chart, curve, y);
  const int left = chart.column + kMargin, below = chart.row + 1 + rows;
  dots.draw(canvas, chart.row + 1, left);
  canvas.write_before(chart.row + 1, left - 1, number_text(y.high), Ink::soft);
  if (rows > 1) canvas.write_before(below - 1, left - 1, number_text(y.low), Ink::soft);
  if (!chart.axis) return;
  const std::string first = "step " + base::group_digits(std::llround(chart.first_step));
  canvas.write(below, left, first, Ink::soft);
  const std::string last = base::group_digits(std::llround(chart.last_step));
  if (static_cast<int>(first.size() + last.size()) < columns)
    canvas.write_before(below, left + columns, last, Ink::soft);
}

}  // namespace kintsugi::report
