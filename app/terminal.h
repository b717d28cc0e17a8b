// Progress on a terminal, or in a log if the output is not a terminal.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::app {

struct ProgressOptions {
  std::FILE* file = stderr;
  double quiet_seconds = 0;                // nothing is shown before
  std::optional<bool> terminal = {};       // queried from the system if not given
  std::optional<int> width = {};           // columns; queried for each line if not given
  double refresh_seconds = 0.1;            // on a terminal, the minimum time between two lines
  double plain_seconds = 5;                // elsewhere
  std::function<double()> seconds = {};    // a clock; the steady one if not given
  std::function<std::string()> time = {};  // of day, before each line elsewhere; the system's if not given
};

// Of the steady clock.
double steady_seconds();

// One line that is overwritten on a terminal and cut to its width. Elsewhere, an occasional plain line with the time of
// day. Single-threaded.
class ProgressLine {
 public:
  explicit ProgressLine(ProgressOptions options = {});
  ~ProgressLine();  // finish()
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // The current progress. May be skipped if the last line is recent; an `important` one is always shown, and stays on
  // the terminal.
  void update(std::string_view text, bool important = false);
  // A separate line above the progress, which stays.
  void print(std::string_view line);
  // Shows the last update, if it was skipped, and ends the line. Updates may follow.
  void finish();
  // Clears the last update on a terminal. Updates may follow.
  void clear();

  bool terminal() const { return terminal_; }
  int columns() const { return std::max(1, width() - 1); }  // that a line may have on the terminal

 private:
  void draw(std::string_view text);
  void end_line();
  int width() const;

  ProgressOptions options_;
  bool terminal_ = false;
  bool open_ = false;  // the terminal's last line is the progress, without a line break
  bool shown_ = true;  // the last update has been shown
  std::string last_;
  double last_time_ = -1e300, begun_ = 0;
};

// "[=====>    ]", `columns` columns wide; `share` from 0 to 1.
std::string progress_bar(double share, int columns);

// The beginning of UTF-8 `text` that fits into `columns`, a column per character.
std::string_view fit_columns(std::string_view text, int columns);

}  // namespace kintsugi::app
