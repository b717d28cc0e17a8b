// Progress on a terminal, or in the log that stands in its place.
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::app {

struct ProgressOptions {
  std::FILE* file = stderr;
  std::optional<bool> terminal = {};     // asked of the system if not given
  std::optional<int> width = {};         // columns; the same, anew for each line
  double refresh_seconds = 0.1;          // on a terminal, at least this long between two lines
  double plain_seconds = 5;              // elsewhere
  std::function<double()> seconds = {};  // a clock; the steady one if not given
};

// One line that is written over and over on a terminal, cut to its width. Elsewhere a plain line now and then. For one
// thread.
class ProgressLine {
 public:
  explicit ProgressLine(ProgressOptions options = {});
  ~ProgressLine();  // finish()
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // What is going on now. May be left out where the last line is young; an `important` one never is, and stays on the
  // terminal.
  void update(std::string_view text, bool important = false);
  // A line of its own, which stays, above the progress.
  void print(std::string_view line);
  // Shows the last update, if it was left out, and ends the line. Updates may follow.
  void finish();

  bool terminal() const { return terminal_; }

 private:
  void draw(std::string_view text);
  void end_line();
  int width() const;

  ProgressOptions options_;
  bool terminal_ = false;
  bool open_ = false;  // the terminal's last line is ours and has no end yet
  bool shown_ = true;  // the last update has been
  std::string last_;
  double last_time_ = -1e300;
};

// "[=====>    ]" of `columns` columns in all; `share` from 0 to 1.
std::string progress_bar(double share, int columns);

// The beginning of UTF-8 `text` that fits into `columns`, a column per character.
std::string_view fit_columns(std::string_view text, int columns);

}  // namespace kintsugi::app
